#include "transport/tcp/address.h"

namespace tutti::tcp {

std::string format(const Address& address) {
  return meeting::format_endpoints(address.endpoints) + "/" + meeting::format_hex(address.nonce) + "/" +
         tutti::format(address.limits);
}

std::optional<Address> parse_address(std::string_view text) {
  const std::size_t slash = text.find('/'), second = text.rfind('/');
  if (slash == second) return std::nullopt;
  Address address;
  auto endpoints = meeting::parse_endpoints(text.substr(0, slash));
  const auto limits = parse_limits(text.substr(second + 1));
  if (!endpoints || !limits) return std::nullopt;
  if (!meeting::parse_hex(text.substr(slash + 1, second - slash - 1), address.nonce)) return std::nullopt;
  address.endpoints = *std::move(endpoints);
  address.limits = *limits;
  return address;
}

std::optional<Address> published_by(const PeerInfo& peer) {
  const auto text = peer.addresses.find("tcp");
  return text == peer.addresses.end() ? std::nullopt : parse_address(text->second);
}

}  // namespace tutti::tcp
