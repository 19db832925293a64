#include "transport/meeting/address_text.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

namespace tutti::meeting {
namespace {

constexpr std::size_t max_endpoints = 16;

std::optional<SocketAddress> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  std::uint16_t port = 0;
  if (!parse_number(text.substr(colon + 1), port) || port == 0) return std::nullopt;
  const auto address = parse_address(std::string(text.substr(0, colon)), port);
  // This also refuses an IPv6 address without brackets.
  return address && address->text() == text ? address : std::nullopt;
}

}  // namespace

std::string format_endpoints(const Endpoints& endpoints) {
  std::string text;
  for (const SocketAddress& endpoint : endpoints) text += (text.empty() ? "" : ",") + endpoint.text();
  return text;
}

std::optional<Endpoints> parse_endpoints(std::string_view text) {
  Endpoints endpoints;
  for (;;) {
    const std::size_t comma = text.find(',');
    const auto endpoint = parse_endpoint(text.substr(0, comma));
    if (!endpoint || endpoints.size() == max_endpoints) return std::nullopt;
    endpoints.push_back(*endpoint);
    if (comma == text.npos) return endpoints;
    text.remove_prefix(comma + 1);
  }
}

bool all_loopback(const Endpoints& endpoints) {
  return std::ranges::all_of(endpoints, [](const SocketAddress& each) { return each.is_loopback(); });
}

std::string format_hex(std::uint64_t number) {
  std::array<char, 17> text;
  std::snprintf(text.data(), text.size(), "%016" PRIx64, number);
  return text.data();
}

bool parse_hex(std::string_view text, std::uint64_t& number) {
  return text.size() == 16 && parse_number(text, number, 16);
}

}  // namespace tutti::meeting
