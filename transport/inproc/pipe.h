#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "transport/inproc/mailbox.h"
#include "transport/stream/frame.h"

namespace tutti::inproc {

// A `Packet` is a frame in a queue.
struct Packet {
  std::size_t bytes = 0;  // how much of the queue's limit the packet takes
  EncodedFrameHeader header;
  std::vector<std::byte> payload;
};

// A `Pipe` connects two ranks of one process: a bounded queue of frames in each direction. Side 0 is the
// lower rank, and side 1 is the higher rank.
class Pipe {
 public:
  enum class Outcome { done, wait, closed, refused };

  Pipe(int low, int high, std::shared_ptr<Mailbox> low_box, std::shared_ptr<Mailbox> high_box)
      : ranks_{low, high}, boxes_{std::move(low_box), std::move(high_box)} {}

  int rank(int side) const { return ranks_[static_cast<std::size_t>(side)]; }
  Mailbox& box(int side) { return *boxes_[static_cast<std::size_t>(side)]; }

  // Copies a frame into the queue of the other side. If the result is `wait`, the queue is full, and this
  // side is notified when there is room.
  Outcome push(int side, const EncodedFrameHeader& header, std::span<const std::byte> payload,
               std::size_t limit);
  // Copies a payload into the memory of the other side, and then the frame without its payload into the other
  // side's queue. The payload counts towards the queue's limit, too. If the result is `refused`, the other
  // side has not registered that memory.
  Outcome write(int side, const OutgoingFrame& frame, std::size_t limit);
  // Swaps the next frame for this side into `packet`. The pipe reuses the memory that `packet` had. If the
  // result is `closed`, no more frames will arrive.
  Outcome pop(int side, Packet& packet);
  // Ends sending and receiving on this side. The peer can still receive the frames that were sent before.
  void close(int side);
  void accept() { accepted_.store(true); }
  bool accepted() const { return accepted_.load(); }

 private:
  struct Direction {  // the frames on their way to one side
    // Returns `done` if a frame of this size may be appended.
    Outcome make_room(std::size_t wanted, std::size_t limit);
    void append(const EncodedFrameHeader& header, std::span<const std::byte> payload, std::size_t counted);

    std::list<Packet> queue;
    std::list<Packet> spare;  // packets whose memory is reused
    std::size_t bytes = 0;
    bool sender_closed = false;
    bool receiver_closed = false;
    bool sender_waits = false;
  };

  const std::array<int, 2> ranks_;
  const std::array<std::shared_ptr<Mailbox>, 2> boxes_;
  std::atomic<bool> accepted_{false};  // true once both sides have the pipe
  std::mutex mutex_;
  std::array<Direction, 2> towards_;
};

}  // namespace tutti::inproc
