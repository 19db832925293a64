#include "transport/mpi/address.h"

#include <array>

#include "transport/meeting/address_text.h"
#include "transport/mpi/abi.h"

namespace tutti::mpi {

std::string format(const Address& address) {
  return meeting::format_hex(address.world) + "/" + std::to_string(address.rank) + "/" +
         std::to_string(address.tag) + "/" + meeting::format_hex(address.nonce) + "/" +
         tutti::format(address.limits);
}

std::optional<Address> parse_address(std::string_view text) {
  std::array<std::string_view, 4> parts;
  for (std::string_view& part : parts) {
    const std::size_t slash = text.find('/');
    if (slash == text.npos) return std::nullopt;
    part = text.substr(0, slash);
    text = text.substr(slash + 1);
  }
  Address address;
  const auto limits = parse_limits(text);
  if (!limits || !meeting::parse_hex(parts[0], address.world) ||
      !meeting::parse_number(parts[1], address.rank) || !meeting::parse_number(parts[2], address.tag) ||
      !meeting::parse_hex(parts[3], address.nonce))
    return std::nullopt;
  if (address.rank < 0 || address.tag < 0 || address.tag > largest_tag) return std::nullopt;
  address.limits = *limits;
  return address;
}

std::optional<Address> published_by(const PeerInfo& peer) {
  const auto text = peer.addresses.find("mpi");
  return text == peer.addresses.end() ? std::nullopt : parse_address(text->second);
}

}  // namespace tutti::mpi
