#include "transport/tcp/address.h"

#include <array>
#include <charconv>
#include <cinttypes>
#include <cstdio>

namespace tutti::tcp {
namespace {

constexpr std::size_t max_endpoints = 16;

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) return std::nullopt;
  asio::error_code failure;
  const asio::ip::address address = asio::ip::make_address(std::string(host), failure);
  if (failure || address.is_v6() != bracketed) return std::nullopt;
  return Endpoint(address, port);
}

}  // namespace

std::string format_endpoints(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints) {
    if (!text.empty()) text += ',';
    const std::string host = endpoint.address().to_string();
    text += endpoint.address().is_v6() ? "[" + host + "]" : host;
    text += ':' + std::to_string(endpoint.port());
  }
  return text;
}

std::string format(const Address& address) {
  std::array<char, 17> nonce;
  std::snprintf(nonce.data(), nonce.size(), "%016" PRIx64, address.nonce);
  return format_endpoints(address.endpoints) + "/" + nonce.data() + "/" + tutti::format(address.limits);
}

std::optional<Address> parse_address(std::string_view text) {
  const std::size_t slash = text.find('/'), second = text.rfind('/');
  if (slash == text.npos || second - slash - 1 != 16) return std::nullopt;
  Address address;
  const char* const last = text.data() + second;
  const auto [end, error] = std::from_chars(text.data() + slash + 1, last, address.nonce, 16);
  const auto limits = parse_limits(text.substr(second + 1));
  if (error != std::errc() || end != last || !limits) return std::nullopt;
  address.limits = *limits;
  for (std::string_view list = text.substr(0, slash);;) {
    const std::size_t comma = list.find(',');
    const auto endpoint = parse_endpoint(list.substr(0, comma));
    if (!endpoint || address.endpoints.size() == max_endpoints) return std::nullopt;
    address.endpoints.push_back(*endpoint);
    if (comma == list.npos) return address;
    list.remove_prefix(comma + 1);
  }
}

std::optional<Address> published_by(const PeerInfo& peer) {
  const auto text = peer.addresses.find("tcp");
  return text == peer.addresses.end() ? std::nullopt : parse_address(text->second);
}

}  // namespace tutti::tcp
