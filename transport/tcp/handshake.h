#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tutti::tcp {

// A `Hello` is the first thing on a connection: the side that connected says it, the other side answers, and
// no frame is sent before a welcome. Both are little-endian, have fixed sizes, and lead to no allocation.
//
//   hello:  magic 8 | version 4 | from 4 | to 4 | side 4 | from's nonce 8 | to's nonce 8
//   answer: magic 8 | version 4 | verdict 4
struct Hello {
  std::uint32_t version = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t side = 0;  // 0: the connection for frames; else one beside it, for payloads of `from`'s
  // The nonces from the addresses that both have published: they prove that each is the process in the
  // other's table of ranks.
  std::uint64_t from_nonce = 0;
  std::uint64_t to_nonce = 0;
};

enum class Verdict : std::uint32_t {
  welcome = 1,     // frames may follow, from either side
  wait = 2,        // our own connection to you is coming; the lower rank's connection wins
  connected = 3,   // we have a connection with your rank
  stranger = 4,    // you are not the process that our table has for that rank, or do not mean us
  wrong_rank = 5,  // we are not the rank that you meant, or there is no rank like yours
  wrong_version = 6,
  gone = 7,  // we have closed, or given your rank up
};

inline constexpr std::uint32_t handshake_version = 2;
inline constexpr std::size_t hello_bytes = 40;
inline constexpr std::size_t answer_bytes = 16;
inline constexpr std::size_t magic_bytes = 8;

std::array<std::byte, hello_bytes> encode(const Hello& hello);
std::array<std::byte, answer_bytes> encode(Verdict verdict);
// Return nothing if the bytes are something else. The caller judges a version that is not ours; then only the
// fields up to the version are valid.
std::optional<Hello> decode_hello(std::span<const std::byte, hello_bytes> from);
std::optional<Verdict> decode_answer(std::span<const std::byte, answer_bytes> from);
// Returns whether the bytes so far could be the start of a hello: strangers are recognised by their first
// bytes.
bool begins_like_hello(std::span<const std::byte> bytes);

}  // namespace tutti::tcp
