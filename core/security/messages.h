#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

// These are the messages that guards exchange. They are little-endian. Their sizes are fixed, so that no peer
// can make us allocate memory.
//
//   opening: magic 8 | version 2 | mode 1 | service 1 | from 4 | to 4 | zeros 12 | nonce 32
//   notice:  magic 8 | version 2 | mode 1 | verdict 1 | zeros 20 | nonce or proof 32
//   proof:   32
namespace tutti::security {

// Of tutti's protocols, only the guard's begins with the byte 0xd7. So the first byte that arrives shows
// whether the connecting side has a guard.
inline constexpr std::array<unsigned char, 8> opening_magic = {0xd7, 't', 'u', 't', 't', 'i', '\r', '\n'};
inline constexpr std::array<unsigned char, 8> notice_magic = {0xd7, 'T', 'U', 'T', 'T', 'I', '\r', '\n'};
inline constexpr std::size_t body_offset = 32;
inline constexpr std::uint16_t guard_version = 2;

// A `Mode` says how a connection is protected. Both sides must use the same mode.
enum class Mode : std::uint8_t {
  challenge = 1,  // proofs, and no encryption
  tls_token = 2,  // TLS with a key that both sides derive from the token and these messages
  tls_files = 3,  // TLS with certificates, and inside it proofs for this connection alone
};

// These words name the side that makes a proof.
inline constexpr std::string_view connector = "connector";
inline constexpr std::string_view acceptor = "acceptor";

inline constexpr const char* advice =
    " (TUTTI_TOKEN or TUTTI_TOKEN_FILE, the same on all ranks; `tutti run` sets it for those that it starts)";

inline bool begins_with(std::span<const std::byte> bytes, std::span<const unsigned char> magic) {
  return std::memcmp(bytes.data(), magic.data(), std::min(bytes.size(), magic.size())) == 0;
}

// Returns whether the bytes begin like one of tutti's other protocols. If they do, the other side does not
// expect a guard.
inline bool begins_unguarded(std::span<const std::byte> bytes) {
  constexpr char name[] = {'t', 'u', 't', 't', 'i'};
  const std::size_t count = std::min(bytes.size(), sizeof name);
  for (std::size_t i = 0; i < count; ++i) {
    if ((std::to_integer<unsigned char>(bytes[i]) | 0x20) != name[i]) return false;
  }
  return true;
}

template <class T>
void put(std::span<std::byte> to, std::size_t offset, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to[offset + i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
}

template <class T>
T take(std::span<const std::byte> from, std::size_t offset) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<T>(value << 8 | std::to_integer<T>(from[offset + i]));
  }
  return value;
}

}  // namespace tutti::security
