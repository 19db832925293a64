#pragma once

#include <cstdint>
#include <type_traits>

#include "transport/meeting/note_head.h"

// A `Note` is one packet on a local socket.
namespace tutti::shm {

// A `NoteKind` says what a note means. In its comments, a word in front of a colon names the sender.
enum class NoteKind : std::uint32_t {
  share = 1,    // member: asks for the segment `key`; carries the member's bell
  offer = 2,    // leader: offers the segment; carries the memfd and the members' bells
  mapped = 3,   // member: has mapped the segment, and written its proof into it
  go = 4,       // leader: all members have mapped the segment; after `welcome`, the pipe is open
  refused = 5,  // either: there will be no segment, or no pipe, and why
  goodbye = 6,  // either: has released the segment; so the connection's end will not mean a death
  connect = 7,  // offers a pipe for a channel; carries the pipe's memfd and the sender's bell
  welcome = 8,  // has mapped the pipe and written its proof; carries a bell; `go` or `refused` follows
  wait = 9,     // the sender's own pipe is on its way and will be used, since the sender is the lower rank
  lost = 10,    // leader: `member` has died, and why
};

inline constexpr std::uint64_t note_magic = 0x6d687369'74747574;  // "tuttishm"
inline constexpr std::uint32_t note_version = 1;

// Both sides are on one machine, so the bytes of a note are sent unchanged. A packet counts as a
// note if its size, magic and version are right. The receiver checks every other field before it
// uses that field.
struct Note : meeting::NoteHead<NoteKind, note_magic, note_version> {
  // In `share`, `key` names the wanted segment, and `bytes` is its size. `member` is the index of the member
  // that asks, and `members` is the number of members. In `connect`, `bytes` is the size of each ring. In
  // `lost`, `member` is the index of the member that has died.
  std::uint64_t key = 0;
  std::uint64_t bytes = 0;
  std::uint32_t member = 0;
  std::uint32_t members = 0;
  std::uint64_t proof = 0;  // offer, connect: the receiver writes this number into the memory
  meeting::Reason why{};    // refused, lost
};
static_assert(std::is_trivially_copyable_v<Note> && sizeof(Note) == 256);

}  // namespace tutti::shm
