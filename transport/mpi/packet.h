#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace tutti::mpi {

enum class PacketKind : std::uint32_t {
  hello = 1,    // the sender wants to connect, or answers a hello
  refusal = 2,  // the sender does not connect; a text with the reason follows
  frame = 3,    // a part of a frame follows
  credit = 4,   // nothing follows
  end = 5,      // the sender has closed the connection, and sends nothing more
  left = 6,     // the same, but the sender has left before it could say goodbye
};

// A `PacketHead` starts every message that the transport sends through MPI. All ranks run the same build and
// have the same byte order, since MPI is told that the message consists of bytes.
struct PacketHead {
  static constexpr std::uint32_t right_magic = 0x6d706931;

  std::uint32_t magic = right_magic;
  PacketKind kind = PacketKind::hello;
  std::uint32_t from = 0;   // the sender's rank
  std::uint32_t taken = 0;  // the number of packets with frames that the sender has dealt with, modulo 2^32
  std::uint64_t nonce = 0;  // the nonce in the sender's address
  // These two are set in a hello. The receiver of the hello may send `window` packets with frames that the
  // sender has not dealt with, of `packet_bytes` each.
  std::uint32_t window = 0;
  std::uint32_t packet_bytes = 0;
};
static_assert(sizeof(PacketHead) == 32);

// The memory of a packet begins at a multiple of this.
inline constexpr std::size_t packet_alignment = 64;
// A packet of this size holds the head and the header of a frame. No rank may ask for smaller packets.
inline constexpr std::uint32_t least_packet_bytes = 128;

// Returns the head of a packet, or nothing if these bytes are not a packet.
inline std::optional<PacketHead> head_of(std::span<const std::byte> packet) {
  PacketHead head;
  if (packet.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, packet.data(), sizeof head);
  if (head.magic != PacketHead::right_magic) return std::nullopt;
  return head;
}

}  // namespace tutti::mpi
