#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <tutti/store.h>

// This file describes what a store connection carries besides the messages of store.proto. First
// each side sends a greeting, the client before the server. Then a length precedes each message.
// The greetings have a fixed size, so that each side recognises a stranger before it interprets
// anything else.
namespace tutti::store_wire {

inline constexpr std::array<char, 8> magic = {'T', 'U', 'T', 'T', 'I', 'S', 'T', '\n'};
inline constexpr std::uint16_t version = 1;

struct ClientHello {
  std::array<char, 8> magic = store_wire::magic;
  std::uint16_t version = store_wire::version;  // little endian, like all numbers here
  std::array<std::uint8_t, 6> reserved = {};
};
static_assert(sizeof(ClientHello) == 16);

using Nonce = std::array<std::uint8_t, 16>;

struct ServerHello {
  std::array<char, 8> magic = store_wire::magic;
  std::uint16_t version = store_wire::version;
  std::array<std::uint8_t, 6> reserved = {};
  Nonce nonce = {};  // random for each server, so that sessions at the same address differ
};
static_assert(sizeof(ServerHello) == 32);

inline constexpr std::size_t length_bytes = 4;
// A request with a key and two values, all of the largest size, fits into this.
inline constexpr std::size_t max_frame_bytes = 2 * max_store_value_bytes + (std::size_t{64} << 10);
// Buffers grow by this much as bytes arrive. The announced length does not matter, since a client
// may announce any length.
inline constexpr std::size_t receive_step = std::size_t{256} << 10;
inline constexpr std::size_t max_keys_per_request = 1024;

inline std::uint16_t little_endian16(std::uint16_t value) {
  if constexpr (std::endian::native == std::endian::big) return __builtin_bswap16(value);
  return value;
}
inline std::uint32_t little_endian32(std::uint32_t value) {
  if constexpr (std::endian::native == std::endian::big) return __builtin_bswap32(value);
  return value;
}

}  // namespace tutti::store_wire
