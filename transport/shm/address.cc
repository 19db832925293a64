#include "transport/shm/address.h"

#include "transport/meeting/address_text.h"

namespace tutti::shm {
namespace {

constexpr std::size_t longest_name = 64;

}  // namespace

std::string format(const Address& address) {
  return address.name + "/" + std::to_string(address.uid) + "/" + meeting::format_hex(address.nonce) + "/" +
         tutti::format(address.limits);
}

std::optional<Address> parse_address(std::string_view text) {
  const std::size_t last = text.rfind('/');
  if (last == text.npos) return std::nullopt;
  const auto limits = parse_limits(text.substr(last + 1));
  if (!limits) return std::nullopt;
  text = text.substr(0, last);
  const std::size_t first = text.find('/'), second = text.rfind('/');
  if (first == text.npos || first == second || first == 0 || first > longest_name) return std::nullopt;
  Address address;
  address.limits = *limits;
  address.name = text.substr(0, first);
  if (!meeting::parse_number(text.substr(first + 1, second - first - 1), address.uid)) return std::nullopt;
  if (!meeting::parse_hex(text.substr(second + 1), address.nonce)) return std::nullopt;
  return address;
}

std::optional<Address> published_by(const PeerInfo& peer) {
  const auto text = peer.addresses.find("shm");
  return text == peer.addresses.end() ? std::nullopt : parse_address(text->second);
}

}  // namespace tutti::shm
