#pragma once

#include <memory>

#include "transport/shm/bell.h"
#include "transport/shm/ring.h"
#include "transport/shm/segment.h"

namespace tutti::shm {

// A `Pipe` connects two ranks of one host: a ring in each direction, and the words that the ranks use to wake
// each other. The rings and the words are in a `Segment`, which side 0 made and side 1 mapped.
class Pipe {
 public:
  static constexpr std::size_t min_ring = 4096;
  static constexpr std::size_t max_ring = std::size_t{1} << 30;
  static bool is_ring_size(std::uint64_t bytes) {
    return bytes >= min_ring && bytes <= max_ring && std::has_single_bit(bytes);
  }

  // Makes the pipe, as side 0. Side 1 must write `proof` into it.
  static Result<std::unique_ptr<Pipe>> create(std::size_t ring, std::uint64_t proof);
  // Maps the pipe, as side 1, and writes the proof.
  static Result<std::unique_ptr<Pipe>> map(Descriptor memfd, std::uint64_t ring, std::uint64_t proof);

  int descriptor() const { return segment_.descriptor(); }
  // Returns whether side 1 has written the proof.
  bool is_proved() const;
  void close_descriptor() { segment_.close_descriptor(); }
  void set_rope(SharedRope peer) { rope_ = std::move(peer); }

  RingWriter& out() { return out_; }
  RingReader& in() { return in_; }
  // Rings if the other side sleeps. Call this after `publish` and `release`.
  void wake_peer() {
    // Only this side writes the pulse, and its value does not matter. The store only needs a place in the
    // total order of the sequentially consistent accesses (docs/threads.md).
    own_->pulse.store(++pulse_, std::memory_order_seq_cst);
    if (peer_->asleep.load(std::memory_order_seq_cst) != 0 && peer_->asleep.exchange(0) != 0) rope_->ring();
  }
  // Tells the peer that this side is about to sleep. After this call, check the rings once more, since the
  // peer may have written before it could notice that this side sleeps.
  void announce_sleep() {
    own_->asleep.store(1, std::memory_order_seq_cst);
    static_cast<void>(peer_->pulse.load(std::memory_order_seq_cst));
  }
  void cancel_sleep() { own_->asleep.store(0, std::memory_order_relaxed); }

 private:
  struct Front;

  void lay_out(std::size_t side, std::size_t ring);
  Front& front() const { return *reinterpret_cast<Front*>(segment_.memory().data()); }

  Segment segment_;
  std::uint64_t proof_ = 0;
  SharedRope rope_;
  Side* own_ = nullptr;
  Side* peer_ = nullptr;
  std::uint32_t pulse_ = 0;
  RingWriter out_;
  RingReader in_;
};

}  // namespace tutti::shm
