#include "transport/tcp/handshake.h"

#include <algorithm>
#include <cstring>

#include "transport/stream/frame.h"

namespace tutti::tcp {
namespace {

// The line end in both magic numbers reveals a gateway that converts line ends. A socket that connects to a
// local port without a listener can end up connected to itself. It then reads its own hello, which must not
// pass for an answer. So the two numbers differ.
constexpr char hello_magic[magic_bytes + 1] = "tutti?\r\n";
constexpr char answer_magic[magic_bytes + 1] = "tutti!\r\n";

template <class T>
T load(const std::byte* from) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) value = static_cast<T>(value << 8) | std::to_integer<T>(from[i]);
  return value;
}

template <class T>
void store(std::byte* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
}

}  // namespace

std::array<std::byte, hello_bytes> encode(const Hello& hello) {
  std::array<std::byte, hello_bytes> bytes{};
  std::memcpy(bytes.data(), hello_magic, magic_bytes);
  store(&bytes[8], hello.version);
  store(&bytes[12], hello.from);
  store(&bytes[16], hello.to);
  store(&bytes[20], hello.stripe);
  store(&bytes[24], hello.from_nonce);
  store(&bytes[32], hello.to_nonce);
  return bytes;
}

std::array<std::byte, answer_bytes> encode(Verdict verdict) {
  std::array<std::byte, answer_bytes> bytes{};
  std::memcpy(bytes.data(), answer_magic, magic_bytes);
  store(&bytes[8], handshake_version);
  store(&bytes[12], static_cast<std::uint32_t>(verdict));
  return bytes;
}

std::optional<Hello> decode_hello(std::span<const std::byte, hello_bytes> from) {
  if (!begins_like_hello(from)) return std::nullopt;
  Hello hello;
  hello.version = load<std::uint32_t>(&from[8]);
  hello.from = load<std::uint32_t>(&from[12]);
  hello.to = load<std::uint32_t>(&from[16]);
  hello.stripe = load<std::uint32_t>(&from[20]);
  if (hello.version == handshake_version && hello.stripe > max_stripes) return std::nullopt;
  hello.from_nonce = load<std::uint64_t>(&from[24]);
  hello.to_nonce = load<std::uint64_t>(&from[32]);
  return hello;
}

std::optional<Verdict> decode_answer(std::span<const std::byte, answer_bytes> from) {
  if (std::memcmp(from.data(), answer_magic, magic_bytes) != 0) return std::nullopt;
  const std::uint32_t verdict = load<std::uint32_t>(&from[12]);
  if (verdict < static_cast<std::uint32_t>(Verdict::welcome) ||
      verdict > static_cast<std::uint32_t>(Verdict::gone)) {
    return std::nullopt;
  }
  if (load<std::uint32_t>(&from[8]) != handshake_version) return Verdict::wrong_version;
  return static_cast<Verdict>(verdict);
}

bool begins_like_hello(std::span<const std::byte> bytes) {
  return bytes.empty() || std::memcmp(bytes.data(), hello_magic, std::min(bytes.size(), magic_bytes)) == 0;
}

}  // namespace tutti::tcp
