#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "transport/stream/limits.h"
#include "transport/stream/stream_channel.h"

namespace tutti {

inline constexpr MessageLimits small_limits{.eager = 100, .credit = 4096, .fragment = 256};

// `TestSend` and `TestRecv` own their memory and record how they ended.
struct TestSend : SendOp {
  std::vector<std::byte> memory;
  int completions = 0;
  Status status;
  std::function<void()> then;

  explicit TestSend(std::size_t bytes, std::uint64_t sequence = 0, int seed = 1) : memory(bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      memory[i] = static_cast<std::byte>((i * 7 + i / 251 + seed) & 0xff);
    header.tag = {1, 0, sequence};
    header.bytes = bytes;
    data = memory.data();
    done = [](SendOp& op, const Status& why) {
      auto& self = static_cast<TestSend&>(op);
      ++self.completions;
      self.status = why;
      if (self.then) self.then();
    };
  }
  bool ok() const { return completions == 1 && status.ok(); }
  bool failed(Code code) const { return completions == 1 && status.code() == code; }
  // Overwrites the memory. A caller may do this after the send has completed.
  void scribble() { std::fill(memory.begin(), memory.end(), std::byte{0xee}); }
};

struct TestRecv : RecvOp {
  std::vector<std::byte> memory;
  int completions = 0;
  Status status;
  std::function<void()> then;

  explicit TestRecv(std::size_t size, std::uint64_t sequence = 0) : memory(size) {
    tag = {1, 0, sequence};
    bytes = size;
    peer = 1;
    sink.out = memory.data();
    done = [](RecvOp& op, const Status& why) {
      auto& self = static_cast<TestRecv&>(op);
      ++self.completions;
      self.status = why;
      if (self.then) self.then();
    };
  }
  bool ok() const { return completions == 1 && status.ok(); }
  bool failed(Code code) const { return completions == 1 && status.code() == code; }
};

// `TestOwner` replaces the mesh. It matches messages with receives by their tags.
class TestOwner final : public TransportOwner {
 public:
  explicit TestOwner(int rank) : rank_(rank) {
    for (int i = 0; i < 2; ++i) peers_.push_back(PeerInfo{i, "host" + std::to_string(i), 100 + i, "", 0, {}});
  }
  const PeerInfo& peer(int rank) const override { return peers_[static_cast<std::size_t>(rank)]; }
  int size() const override { return 2; }
  int rank() const override { return rank_; }
  Channel* on_incoming(int, Transport&) override { return nullptr; }
  void on_unusable(int, Transport&, const Status&) override {}

  RecvOp* on_arrival(Arrival& arrival) override {
    order.push_back(arrival.header.tag.sequence);
    if (discard_all) {
      arrival.channel->discard(arrival);
      return nullptr;
    }
    for (auto it = posted.begin(); it != posted.end(); ++it) {
      if ((*it)->tag == arrival.header.tag) {
        RecvOp* op = *it;
        posted.erase(it);
        return op;
      }
    }
    kept.push_back(&arrival);
    return nullptr;
  }
  void on_withdrawn(Arrival& arrival) override {
    kept.erase(std::find(kept.begin(), kept.end(), &arrival));
    ++withdrawn;
  }
  void on_abort(int, std::uint32_t context, const Status& why) override { aborts.push_back({context, why}); }
  void on_channel_down(int, const Status& why) override { downs.push_back(why); }

  // Gives `op` the message that is kept for it, or remembers that `op` waits for a message.
  void recv(RecvOp& op) {
    for (auto it = kept.begin(); it != kept.end(); ++it) {
      if ((*it)->header.tag == op.tag) {
        Arrival* arrival = *it;
        kept.erase(it);
        arrival->channel->claim(*arrival, op);
        return;
      }
    }
    posted.push_back(&op);
  }

  std::vector<RecvOp*> posted;
  std::vector<Arrival*> kept;
  std::vector<std::uint64_t> order;
  std::vector<std::pair<std::uint32_t, Status>> aborts;
  std::vector<Status> downs;
  int withdrawn = 0;
  bool discard_all = false;

 private:
  int rank_;
  std::vector<PeerInfo> peers_;
};

// A `PipeChannel` is a byte stream with a small buffer, like a socket. The test itself moves the bytes.
class PipeChannel final : public StreamChannel {
 public:
  PipeChannel(int peer, TransportOwner& owner, const MessageLimits& limits)
      : StreamChannel(peer, owner, limits) {}
  using StreamChannel::accept_stripes;
  using StreamChannel::write_remotely;
  using StreamChannel::writes_over;

  PipeChannel* other = nullptr;
  std::size_t room = 1 << 20;        // the size of the buffer
  std::vector<std::byte> in_flight;  // bytes that were written at this end and not yet read at the other
  bool closed = false;
  // If `late_writes` is true, the test calls `end_write` to end each remote write. After the pipe has closed,
  // the test also calls `writes_over`.
  bool late_writes = false;
  OutgoingFrame* under_way = nullptr;  // the remote write that is in progress

  void write() {
    if (writing_) return;
    writing_ = true;
    while (!closed && in_flight.size() < room) {
      if (held_ == nullptr) held_ = next_frame();
      if (held_ == nullptr || under_way != nullptr) break;
      if (!start_write(*held_)) break;
      if (held_->written < frame_header_bytes) {
        put(*held_, held_->header.data() + held_->written, frame_header_bytes - held_->written);
      } else {
        const std::size_t at = held_->written - frame_header_bytes;
        put(*held_, held_->payload.data() + at, held_->payload.size() - at);
      }
      if (held_->written == frame_header_bytes + (is_remote(*held_) ? 0 : held_->payload.size())) {
        OutgoingFrame& frame = *held_;
        held_ = nullptr;
        frame_written(frame);
      }
    }
    writing_ = false;
  }

  // Carries out the remote write that is in progress.
  void end_write() {
    OutgoingFrame& frame = *under_way;
    under_way = nullptr;
    copy_remotely(frame);
    if (closed) return;
    put(frame, frame.header.data(), frame_header_bytes);
    held_ = nullptr;
    frame_written(frame);
    write();
  }

  // Reads at most `most` bytes that the other end has written. Returns false if there are none.
  bool read(std::size_t most) {
    const std::size_t bytes = std::min(most, other->in_flight.size());
    if (bytes == 0 || closed) {
      if (bytes == 0 && other->closed && !closed) {
        pipe_failed(Status(Code::peer_lost, "end of file", peer()));
        return true;
      }
      return false;
    }
    std::vector<std::byte> taken(other->in_flight.begin(),
                                 other->in_flight.begin() + static_cast<long>(bytes));
    other->in_flight.erase(other->in_flight.begin(), other->in_flight.begin() + static_cast<long>(bytes));
    feed(taken);
    if (!other->closed) other->write();
    return true;
  }

  // Handles bytes as if the peer had sent them.
  void feed(std::span<const std::byte> bytes) {
    stash_.insert(stash_.end(), bytes.begin(), bytes.end());
    std::size_t at = 0;
    while (!closed && step(at)) {
    }
    stash_.erase(stash_.begin(), stash_.begin() + static_cast<long>(at));
  }
  void feed(const FrameHeader& header, std::span<const std::byte> payload = {}) {
    EncodedFrameHeader encoded;
    encode(header, encoded);
    feed(encoded);
    feed(payload);
  }

 protected:
  void kick() override { write(); }
  void close_pipe() override {
    closed = true;
    held_ = nullptr;
    if (!late_writes) writes_over();
  }

 private:
  static bool is_remote(const OutgoingFrame& frame) { return frame.route == PayloadRoute::remote_write; }
  static void copy_remotely(const OutgoingFrame& frame) {
    auto* const to = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(frame.place.address));
    std::memcpy(to, frame.payload.data(), frame.payload.size());
  }
  // Starts the frame's remote write, if the frame has one. Returns false if the write is now in progress.
  bool start_write(OutgoingFrame& frame) {
    if (!is_remote(frame) || frame.written != 0) return true;
    if (late_writes) {
      under_way = &frame;
    } else {
      copy_remotely(frame);
    }
    return !late_writes;
  }
  void put(OutgoingFrame& frame, const std::byte* from, std::size_t bytes) {
    bytes = std::min(bytes, room - in_flight.size());
    in_flight.insert(in_flight.end(), from, from + bytes);
    frame.written += bytes;
  }

  bool step(std::size_t& at) {
    const std::span<const std::byte> rest = std::span(stash_).subspan(at);
    if (payload_left() == 0) {
      if (rest.size() < frame_header_bytes) return false;
      FrameHeader header;
      if (!decode(rest.first<frame_header_bytes>(), header)) {
        pipe_failed(Status(Code::protocol_error, "no frame", peer()));
        return false;
      }
      at += frame_header_bytes;
      return begin_frame(header).ok();
    }
    if (rest.empty()) return false;
    if (const std::span<std::byte> place = direct(); !place.empty()) {
      const std::size_t bytes = std::min(place.size(), rest.size());
      std::memcpy(place.data(), rest.data(), bytes);
      at += bytes;
      direct_filled(bytes);
      return true;
    }
    const std::size_t taken = consume(rest);
    at += taken;
    return taken > 0;
  }

  OutgoingFrame* held_ = nullptr;
  bool writing_ = false;
  std::vector<std::byte> stash_;
};

// A `StreamPair` has two ranks with a pipe between them.
struct StreamPair {
  explicit StreamPair(const MessageLimits& limits = {})
      : a(std::make_unique<PipeChannel>(1, owner_a, limits)),
        b(std::make_unique<PipeChannel>(0, owner_b, limits)) {
    a->other = b.get();
    b->other = a.get();
  }
  // Moves bytes until none are left.
  void run(std::size_t chunk = 1 << 20) {
    for (bool moved = true; moved;) {
      moved = a->read(chunk);
      moved = b->read(chunk) || moved;
    }
  }
  void room(std::size_t bytes) { a->room = b->room = bytes; }

  TestOwner owner_a{0};
  TestOwner owner_b{1};
  std::unique_ptr<PipeChannel> a;
  std::unique_ptr<PipeChannel> b;
};

}  // namespace tutti
