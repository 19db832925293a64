#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <tutti/address.h>

// These functions write and read the parts of the addresses that transports publish. The texts to read come
// from peers, so these functions check every part.
namespace tutti::meeting {

// `Endpoints` are the addresses at which a transport listens over TCP: "10.0.0.1:4711,[2001:db8::1]:4711".
using Endpoints = std::vector<SocketAddress>;

std::string format_endpoints(const Endpoints& endpoints);
// Returns nothing if the text does not have the form of `Endpoints` (above), or has more than 16 endpoints.
std::optional<Endpoints> parse_endpoints(std::string_view text);
// Returns whether all endpoints are loopback addresses, which only processes of the same network namespace
// reach.
bool all_loopback(const Endpoints& endpoints);

// Returns the 16 hexadecimal digits of a number, such as a nonce.
std::string format_hex(std::uint64_t number);
// Returns false if the text is not 16 hexadecimal digits.
bool parse_hex(std::string_view text, std::uint64_t& number);

// Returns false if the text is not a number, or not one that `T` can hold.
template <class T>
bool parse_number(std::string_view text, T& number, int base = 10) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number, base);
  return error == std::errc() && end == last;
}

}  // namespace tutti::meeting
