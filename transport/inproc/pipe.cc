#include "transport/inproc/pipe.h"

#include <iterator>

namespace tutti::inproc {

Pipe::Outcome Pipe::push(int side, const EncodedFrameHeader& header, std::span<const std::byte> payload,
                         std::size_t limit) {
  const std::size_t bytes = frame_header_bytes + payload.size();
  {
    const std::lock_guard lock(mutex_);
    Direction& direction = towards_[static_cast<std::size_t>(1 - side)];
    if (const Outcome room = direction.make_room(bytes, limit); room != Outcome::done) return room;
    direction.append(header, payload, bytes);
  }
  box(1 - side).notify();
  return Outcome::done;
}

// Holds the lock while it writes into the other side's memory. So nothing is written after `close`.
Pipe::Outcome Pipe::write(int side, const OutgoingFrame& frame, std::size_t limit) {
  const std::size_t bytes = frame_header_bytes + frame.payload.size();
  {
    const std::lock_guard lock(mutex_);
    Direction& direction = towards_[static_cast<std::size_t>(1 - side)];
    if (const Outcome room = direction.make_room(bytes, limit); room != Outcome::done) return room;
    if (!box(1 - side).memory()->write(frame.place, frame.payload)) return Outcome::refused;
    direction.append(frame.header, {}, bytes);
  }
  box(1 - side).notify();
  return Outcome::done;
}

Pipe::Outcome Pipe::Direction::make_room(std::size_t wanted, std::size_t limit) {
  if (receiver_closed || sender_closed) return Outcome::closed;
  if (queue.empty() || bytes + wanted <= limit) return Outcome::done;
  sender_waits = true;
  return Outcome::wait;
}

void Pipe::Direction::append(const EncodedFrameHeader& header, std::span<const std::byte> payload,
                             std::size_t counted) {
  if (spare.empty()) spare.emplace_back();
  Packet& packet = spare.back();
  packet.bytes = counted;
  packet.header = header;
  packet.payload.assign(payload.begin(), payload.end());
  queue.splice(queue.end(), spare, std::prev(spare.end()));
  bytes += counted;
}

Pipe::Outcome Pipe::pop(int side, Packet& packet) {
  bool wake_sender = false;
  {
    const std::lock_guard lock(mutex_);
    Direction& direction = towards_[static_cast<std::size_t>(side)];
    if (direction.queue.empty()) return direction.sender_closed ? Outcome::closed : Outcome::wait;
    std::swap(packet, direction.queue.front());
    direction.spare.splice(direction.spare.end(), direction.queue, direction.queue.begin());
    direction.bytes -= packet.bytes;
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
