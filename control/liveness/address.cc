#include "control/liveness/address.h"

#include <array>
#include <charconv>

#include <tutti/address.h>

#include "core/random.h"

namespace tutti::liveness {
namespace {

constexpr std::size_t longest_host = 255;

template <class Number>
bool read(std::string_view text, Number& number, int base = 10) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number, base);
  return !text.empty() && error == std::errc() && stopped == end;
}

// Splits a text into the parts between slashes. Returns false if there are not exactly N parts.
template <std::size_t N>
bool split(std::string_view text, std::array<std::string_view, N>& parts) {
  for (std::size_t i = 0; i < N; ++i) {
    const std::size_t slash = text.find('/');
    if ((slash == text.npos) != (i + 1 == N)) return false;
    parts[i] = text.substr(0, slash);
    if (slash != text.npos) text.remove_prefix(slash + 1);
  }
  return true;
}

}  // namespace

std::string format(const Address& address) {
  std::array<unsigned char, 8> nonce;
  for (std::size_t i = 0; i < nonce.size(); ++i)
    nonce[i] = static_cast<unsigned char>(address.nonce >> 8 * (7 - i));
  return format_endpoint(address.host, address.port) + "/" + to_hex(nonce) + "/" +
         std::to_string(address.process.pid_namespace) + "/" + std::to_string(address.process.start_time);
}

std::optional<Address> parse_address(std::string_view text) {
  std::array<std::string_view, 4> parts;
  Address address;
  if (!split(text, parts) || parts[1].size() != 16 || !read(parts[1], address.nonce, 16) ||
      !read(parts[2], address.process.pid_namespace) || !read(parts[3], address.process.start_time)) {
    return std::nullopt;
  }
  const std::size_t colon = parts[0].rfind(':');
  if (colon == text.npos || !read(parts[0].substr(colon + 1), address.port) || address.port == 0)
    return std::nullopt;
  std::string_view host = parts[0].substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty() || host.size() > longest_host) return std::nullopt;
  address.host = host;
  return address;
}

}  // namespace tutti::liveness
