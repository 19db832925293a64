#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "transport/meeting/note_head.h"

// A `Note` is a message of fixed size that two ranks exchange over TCP, to agree on a connection.
namespace tutti::verbs {

enum class NoteKind : std::uint32_t {
  connect = 1,  // the hello: offers a queue pair
  welcome = 2,  // has connected a queue pair with the offered one; a packet over it must follow
  go = 3,       // a packet has gone both ways, so both sides may send frames
  wait = 4,     // the sender's own offer is on its way and will be used, since the sender is the lower rank
  cannot = 5,   // this kind of address cannot be used here, but another one may work
  refused = 6,  // there will be no connection, and why
  // No packet has come back yet. The peer answers with the same note, which shows that it is awake.
  check = 7,
  // The other notes are about one rail of a channel that is open (docs/rdma.md).
  offer = 8,    // offers a queue pair for a rail
  accept = 9,   // has connected a queue pair with the offered one; a packet over it must follow
  joined = 10,  // a packet has gone both ways, so both sides may use the rail
  left = 11,    // the sender has destroyed its queue pair of the rail
};

// An `End` is one end of a connection: a queue pair, and the slots into which it receives.
struct End {
  std::uint32_t queue_pair = 0;
  std::uint32_t sequence = 0;  // the number of the first packet that this end sends
  std::uint32_t slots = 0;
  std::uint32_t slot_bytes = 0;
  std::array<std::uint8_t, 16> gid = {};
  std::uint16_t lid = 0;
  std::uint8_t mtu = 0;   // an `ibv_mtu`
  std::uint8_t kind = 0;  // of the address, a `GidKind`
  std::uint32_t reserved = 0;
};

inline constexpr std::uint64_t note_magic = 0x62727669'74747574;  // "tuttivrb"
inline constexpr std::uint32_t note_version = 3;

// The bytes of a note are sent as they are in memory, which is little-endian. The receiver checks every field
// before it uses that field.
struct Note : meeting::NoteHead<NoteKind, note_magic, note_version> {
  std::uint32_t rail = 0;   // the index of the pair of ports (`pair_rails`)
  std::uint32_t taken = 0;  // left: how many packets over the rail the sender has taken
  End end = {};             // connect, welcome, offer, accept
  meeting::Reason why{};    // cannot, refused
};
static_assert(std::endian::native == std::endian::little);
static_assert(std::is_trivially_copyable_v<Note> && sizeof(Note) == 272);

}  // namespace tutti::verbs
