#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

// These are the primitives of authentication, implemented by OpenSSL's libcrypto.
namespace tutti::security {

inline constexpr std::size_t digest_bytes = 32;
using Digest = std::array<std::byte, digest_bytes>;

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Returns the HMAC-SHA256 of the concatenated parts.
Digest hmac(std::span<const std::byte> key, std::initializer_list<std::span<const std::byte>> parts);
// Compares in a time that does not depend on where the bytes differ.
bool equal(std::span<const std::byte> a, std::span<const std::byte> b);
// Overwrites memory. The compiler cannot optimise this away.
void wipe(std::span<std::byte> bytes);
inline void wipe(std::span<char> text) { wipe(std::as_writable_bytes(text)); }
// Fills `bytes` with random bytes from the system. Returns false if the system cannot provide them.
bool fill_random(std::span<std::byte> bytes);

}  // namespace tutti::security
