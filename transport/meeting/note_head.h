#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/flat_status.h"

namespace tutti::meeting {

// A `NoteHead` begins every note. (A note is a message of fixed size by which two ranks agree on a
// connection.) A transport derives its own note from the head, and adds what its connections need. `Kind` is
// the transport's enumeration of notes. A note with another magic number or version is not valid.
template <class Kind, std::uint64_t own_magic, std::uint32_t own_version>
struct NoteHead {
  std::uint64_t magic = own_magic;
  std::uint32_t version = own_version;
  Kind kind = Kind::refused;
  // In the first note on a connection, these are the ranks and published nonces of the note's sender and of
  // its receiver.
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint64_t from_nonce = 0;
  std::uint64_t to_nonce = 0;

  bool is_ours() const { return magic == own_magic && version == own_version; }
};

// A `Reason` says in a note why a connection is refused. A longer text is cut.
inline constexpr std::size_t longest_reason = 180;
using Reason = FlatStatus<longest_reason>;

// Returns the note that these bytes contain. There must be exactly `sizeof(Note)` bytes.
template <class Note>
Note note_of(std::span<const std::byte> bytes) {
  Note note;
  std::memcpy(&note, bytes.data(), sizeof note);
  return note;
}

}  // namespace tutti::meeting
