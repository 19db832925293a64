#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tutti::tcp {

// A `Hello` is the first message on a connection, after the guard's messages. The connecting side sends it,
// the other side answers, and no frame is sent before a welcome. Both messages are little-endian and of fixed
// size, so that no peer can make this rank allocate memory. These are their fields, with the sizes in bytes:
//
//   hello:  magic 8 | version 4 | from 4 | to 4 | stripe 4 | from's nonce 8 | to's nonce 8
//   answer: magic 8 | version 4 | verdict 4
struct Hello {
  std::uint32_t version = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t stripe = 0;  // the number of a stripe for `from`'s payloads, or 0 for the first connection
  // These are the nonces of the addresses that both ranks have published. They show that each rank is the
  // very process that the other rank's table lists.
  std::uint64_t from_nonce = 0;
  std::uint64_t to_nonce = 0;
};

enum class Verdict : std::uint32_t {
  welcome = 1,     // frames may follow, from either side
  wait = 2,        // the lower rank answers this: its own connection is on its way, and will be used
  connected = 3,   // the answering rank has a connection with the connecting rank already
  stranger = 4,    // a nonce is wrong: one of the ranks is not the process that the other rank lists
  wrong_rank = 5,  // the hello is for another rank, or from a rank that does not exist
  wrong_version = 6,
  gone = 7,  // the answering rank has closed, or has given up on the connecting rank
};

inline constexpr std::uint32_t handshake_version = 2;
inline constexpr std::size_t hello_bytes = 40;
inline constexpr std::size_t answer_bytes = 16;
inline constexpr std::size_t magic_bytes = 8;

std::array<std::byte, hello_bytes> encode(const Hello& hello);
std::array<std::byte, answer_bytes> encode(Verdict verdict);
// Each decoder returns nothing if the bytes are not a message of its kind.
// The caller must check `Hello::version`. If it differs from `handshake_version`, the fields after it are
// meaningless.
std::optional<Hello> decode_hello(std::span<const std::byte, hello_bytes> from);
std::optional<Verdict> decode_answer(std::span<const std::byte, answer_bytes> from);
// Returns whether `bytes`, the first ones that have arrived, could be the start of a hello. If not, the
// connection is from another program.
bool begins_like_hello(std::span<const std::byte> bytes);

}  // namespace tutti::tcp
