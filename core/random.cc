#include "core/random.h"

#include <array>
#include <bit>
#include <cerrno>
#include <vector>

#include <sys/random.h>

#include "core/security/digest.h"

namespace tutti {

void fill_random(std::span<unsigned char> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    // For a valid buffer this fails only with EINTR.
    const ssize_t got = getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (got > 0) done += static_cast<std::size_t>(got);
  }
}

std::uint64_t random_number() {
  std::array<unsigned char, sizeof(std::uint64_t)> bytes;
  fill_random(bytes);
  return std::bit_cast<std::uint64_t>(bytes);
}

std::string to_hex(std::span<const unsigned char> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> buffer(bytes);
  fill_random(buffer);
  return to_hex(buffer);
}

Secret random_secret(std::size_t bytes) {
  std::vector<unsigned char> buffer(bytes);
  fill_random(buffer);
  std::string hex = to_hex(buffer);
  security::wipe(std::as_writable_bytes(std::span(buffer)));
  Secret secret(hex);
  security::wipe(hex);
  return secret;
}

}  // namespace tutti
