#include "transport/inproc/pipe.h"

#include <iterator>

namespace tutti::inproc {

Pipe::Outcome Pipe::push(int side, const EncodedFrameHeader& header, std::span<const std::byte> payload,
                         std::size_t limit) {
  const std::size_t bytes = frame_header_bytes + payload.size();
  {
    const std::lock_guard lock(mutex_);
    Direction& direction = towards_[static_cast<std::size_t>(1 - side)];
    if (direction.receiver_closed || direction.sender_closed) return Outcome::closed;
    if (!direction.queue.empty() && direction.bytes + bytes > limit) {
      direction.sender_waits = true;
      return Outcome::wait;
    }
    if (direction.spare.empty()) direction.spare.emplace_back();
    Packet& packet = direction.spare.back();
    packet.header = header;
    packet.payload.assign(payload.begin(), payload.end());
    direction.queue.splice(direction.queue.end(), direction.spare, std::prev(direction.spare.end()));
    direction.bytes += bytes;
  }
  box(1 - side).notify();
  return Outcome::done;
}

Pipe::Outcome Pipe::pop(int side, Packet& packet) {
  bool wake_sender = false;
  {
    const std::lock_guard lock(mutex_);
    Direction& direction = towards_[static_cast<std::size_t>(side)];
    if (direction.queue.empty()) return direction.sender_closed ? Outcome::closed : Outcome::wait;
    std::swap(packet, direction.queue.front());
    direction.spare.splice(direction.spare.end(), direction.queue, direction.queue.begin());
    direction.bytes -= frame_header_bytes + packet.payload.size();
    wake_sender = std::exchange(direction.sender_waits, false);
  }
  if (wake_sender) box(1 - side).notify();
  return Outcome::done;
}

void Pipe::close(int side) {
  {
    const std::lock_guard lock(mutex_);
    Direction& in = towards_[static_cast<std::size_t>(side)];
    in.receiver_closed = true;
    in.queue.clear();
    in.bytes = 0;
    towards_[static_cast<std::size_t>(1 - side)].sender_closed = true;
  }
  box(1 - side).notify();
}

}  // namespace tutti::inproc
