#include "transport/mpi/pipe.h"

#include <algorithm>
#include <cstring>

namespace tutti::mpi {

bool Pipe::take_hello(const PacketHead& hello, std::uint32_t most_packet_bytes) {
  if (hello.window == 0 || hello.packet_bytes < least_packet_bytes) return false;
  window_ = hello.window;
  packet_bytes_ = std::min(hello.packet_bytes, most_packet_bytes);
  return true;
}

bool Pipe::send(PacketKind kind, std::span<const std::byte> first, std::span<const std::byte> second) {
  const std::span<std::byte> memory = outbox_.memory();
  if (memory.empty()) {
    status_ = Status(Code::resource_exhausted, "no memory for packets of MPI");
    return false;
  }
  own_.kind = kind;
  own_.taken = taken_;
  std::memcpy(memory.data(), &own_, sizeof own_);
  auto at = memory.begin() + sizeof own_;
  for (const std::span<const std::byte> part : {first, second}) at = std::copy(part.begin(), part.end(), at);
  status_ = outbox_.send(static_cast<std::size_t>(at - memory.begin()), theirs_.rank, theirs_.tag);
  told_ = taken_;
  return status_.ok();
}

bool Pipe::tell(PacketKind kind, std::span<const std::byte> text) {
  return send(kind, text.first(std::min<std::size_t>(text.size(), least_packet_bytes - sizeof own_)), {});
}

Pipe::Outcome Pipe::write(OutgoingFrame& frame) {
  const std::size_t header = frame.header.size(), all = header + frame.payload.size();
  while (frame.written < all) {
    if (sent_ - acknowledged_ >= window_) return Outcome::full;
    const std::size_t bytes = std::min<std::size_t>(all - frame.written, packet_bytes_ - sizeof own_);
    std::span<const std::byte> first;
    if (frame.written == 0) first = frame.header;
    const auto rest = frame.payload.subspan(std::max(frame.written, header) - header, bytes - first.size());
    if (!send(PacketKind::frame, first, rest)) return Outcome::broken;
    ++sent_;
    frame.written += bytes;
  }
  return Outcome::left;
}

bool Pipe::acknowledge(std::uint32_t taken) {
  if (taken - acknowledged_ > sent_ - acknowledged_) return false;
  acknowledged_ = taken;
  return true;
}

bool Pipe::took_packet() {
  ++taken_;
  return taken_ - told_ < std::max(own_.window / 2, 1u) || tell(PacketKind::credit);
}

}  // namespace tutti::mpi
