#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

// A ring moves bytes from one process to another through shared memory. A `RingWriter` writes at one end, and
// a `RingReader` reads at the other.
namespace tutti::shm {

// Every header and every piece of payload in a ring starts on a cache line, so headers are never split and
// elements are aligned.
inline constexpr std::size_t line_bytes = 64;
// Words that different processes write are two lines apart, since processors fetch lines in pairs.
inline constexpr std::size_t apart_bytes = 128;

constexpr std::size_t round_up_to_lines(std::size_t bytes) {
  return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

// A `Lane` holds the two shared words of one direction. The words are positions in the stream of bytes, and
// only grow. The byte at position p is stored at p modulo the ring's size.
struct Lane {
  alignas(apart_bytes) std::atomic<std::uint64_t> tail;  // set by the writer: bytes before it can be read
  alignas(apart_bytes) std::atomic<std::uint64_t> head;  // set by the reader: bytes before it are free again
};

// A `Side` holds the words that one side uses to sleep and to wake the other.
struct Side {
  // This side sets `asleep` before it sleeps, and the other side clears it when it wakes this side; see
  // docs/threads.md.
  alignas(apart_bytes) std::atomic<std::uint32_t> asleep;
  // Only this side writes `pulse`, after each change that may concern the other side.
  alignas(apart_bytes) std::atomic<std::uint32_t> pulse;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

// A `RingWriter` is the writing end. It keeps copies of both positions, so that it fetches the cache line of
// the reader's position only when the ring seems to be full. The reader may be faulty, so its head is
// checked. A wrong head never leads to a write outside of the ring.
class RingWriter {
 public:
  void open(Lane& lane, std::span<std::byte> data) {
    lane_ = &lane;
    data_ = data;
  }
  // Returns the free bytes at the place of the next write: one contiguous piece of whole cache lines. It
  // loads the reader's position only if the ring seems to be full.
  std::span<std::byte> room() {
    if (tail_ - head_ == data_.size()) refresh();
    const std::size_t place = tail_ & (data_.size() - 1);
    const std::size_t free = data_.size() - static_cast<std::size_t>(tail_ - head_);
    return data_.subspan(place, std::min(free, data_.size() - place));
  }
  void advance(std::size_t bytes) { tail_ += round_up_to_lines(bytes); }
  bool has_unpublished() const { return tail_ != published_; }
  std::size_t unpublished() const { return static_cast<std::size_t>(tail_ - published_); }
  void publish() {
    published_ = tail_;
    lane_->tail.store(tail_, std::memory_order_release);
  }
  // Returns whether the reader has made room since `room` returned no bytes.
  bool has_room() const {
    return tail_ - head_ < data_.size() || lane_->head.load(std::memory_order_relaxed) != head_;
  }
  // Returns whether the reader has written an impossible position.
  bool broken() const { return broken_; }

 private:
  void refresh() {
    const std::uint64_t head = lane_->head.load(std::memory_order_acquire);
    if (head - head_ <= tail_ - head_ && head % line_bytes == 0) {
      head_ = head;
    } else {
      broken_ = true;
    }
  }

  Lane* lane_ = nullptr;
  std::span<std::byte> data_;
  std::uint64_t tail_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t head_ = 0;
  bool broken_ = false;
};

// A `RingReader` is the reading end. It checks the writer's tail, just as `RingWriter` checks the head.
class RingReader {
 public:
  void open(Lane& lane, std::span<const std::byte> data) {
    lane_ = &lane;
    data_ = data;
  }
  // Returns whether the writer has written more. This call is cheap: the cache line that it loads stays in
  // this core's cache until the writer writes.
  bool has_news() const { return lane_->tail.load(std::memory_order_relaxed) != head_; }
  // Prefetches the first lines of the next frame, so that they arrive together with the word that announces
  // the frame, and not after it.
  void expect() const {
    const std::byte* const next = data_.data() + (head_ & (data_.size() - 1));
    __builtin_prefetch(next);
    __builtin_prefetch(next + line_bytes);
  }
  // Returns the bytes that can be read next: one contiguous piece of whole cache lines. It loads the writer's
  // position only if the ring seems to be empty.
  std::span<const std::byte> readable() {
    if (tail_ == head_) refresh();
    const std::size_t place = head_ & (data_.size() - 1);
    return data_.subspan(place, std::min(static_cast<std::size_t>(tail_ - head_), data_.size() - place));
  }
  void advance(std::size_t bytes) { head_ += round_up_to_lines(bytes); }
  // These return the number of bytes read so far, and the size of the ring.
  std::uint64_t position() const { return head_; }
  std::size_t size() const { return data_.size(); }
  // Returns whether an eighth of the ring has been read since the last `release`. If so, the reader must call
  // `release` again. `release` is not called for each small message, since it writes the cache line that the
  // writer reads. The writer still never waits forever: the bytes that have been read but not released are
  // less than an eighth of the ring.
  bool owes_room() const { return head_ - released_ >= data_.size() / 8; }
  void release() {
    released_ = head_;
    lane_->head.store(head_, std::memory_order_release);
  }
  bool broken() const { return broken_; }

 private:
  void refresh() {
    const std::uint64_t tail = lane_->tail.load(std::memory_order_acquire);
    if (tail - head_ <= data_.size() && tail % line_bytes == 0) {
      tail_ = tail;
    } else {
      broken_ = true;
    }
  }

  Lane* lane_ = nullptr;
  std::span<const std::byte> data_;
  std::uint64_t head_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t tail_ = 0;
  bool broken_ = false;
};

}  // namespace tutti::shm
