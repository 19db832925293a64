#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <tutti/status.h>

// A `Note` is one packet on a local socket.
namespace tutti::shm {

enum class NoteKind : std::uint32_t {
  share = 1,    // member: I want the segment `key`; carries my bell
  offer = 2,    // leader: here it is; carries the memfd and the members' bells
  mapped = 3,   // member: I have it, and my proof is in it
  go = 4,       // leader: all have it
  refused = 5,  // either: the request fails, with the reason
  goodbye = 6,  // either: an orderly end; the closed socket is not a crash
  connect = 7,  // a pipe for a channel; carries its memfd and my bell
  welcome = 8,  // I have it, and the proof is in it; carries my bell. Answered by `go` or `refused`
  wait = 9,     // my own pipe for you is coming; the lower rank's pipe wins
};

inline constexpr std::uint64_t note_magic = 0x6d687369'74747574;  // "tuttishm"
inline constexpr std::uint32_t note_version = 1;

// Both sides are on one machine, so a note is sent as it is; its receiver only trusts its size, magic and
// version.
struct Note {
  std::uint64_t magic = note_magic;
  std::uint32_t version = note_version;
  NoteKind kind = NoteKind::refused;
  // In the first note on a connection: the ranks and published nonces of its sender and of its receiver.
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint64_t from_nonce = 0;
  std::uint64_t to_nonce = 0;
  // share: the segment that is wanted, and which of how many members wants it. connect: `bytes` of each ring.
  std::uint64_t key = 0;
  std::uint64_t bytes = 0;
  std::uint32_t member = 0;
  std::uint32_t members = 0;
  std::uint64_t proof = 0;  // offer, connect: the proof to write into the receiver's place
  std::uint32_t code = 0;   // refused
  std::uint32_t unused = 0;
  std::array<char, 176> text{};  // refused; ends with a zero unless it is full

  bool is_ours() const { return magic == note_magic && version == note_version; }
  void set_reason(const Status& why) {
    code = static_cast<std::uint32_t>(why.code());
    text = {};
    std::copy_n(why.message().begin(), std::min(why.message().size(), text.size()), text.begin());
  }
  Status reason(int peer) const {
    const bool known = code > 0 && code <= static_cast<std::uint32_t>(Code::internal);
    const auto end = std::find(text.begin(), text.end(), '\0');
    return Status(known ? static_cast<Code>(code) : Code::internal, std::string(text.begin(), end), peer);
  }
};
static_assert(std::is_trivially_copyable_v<Note> && sizeof(Note) == 256);

}  // namespace tutti::shm
