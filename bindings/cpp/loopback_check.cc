#include "bindings/cpp/loopback_check.h"

#include <algorithm>
#include <optional>
#include <string>

#include <tutti/address.h>

#include "control/liveness/address.h"

namespace tutti {
namespace {

// Returns the host that a rank advertises for its control connections if that host is loopback, and
// otherwise an empty text. The rank's transports advertise this host, too.
std::string loopback_address(const PeerInfo& rank) {
  const auto text = rank.addresses.find(liveness::address_name);
  if (text == rank.addresses.end()) return {};
  const std::optional<liveness::Address> address = liveness::parse_address(text->second);
  return address && names_loopback(address->host) ? address->host : std::string();
}

}  // namespace

Status check_loopback(const std::vector<PeerInfo>& ranks) {
  for (const PeerInfo& rank : ranks) {
    const std::string address = loopback_address(rank);
    if (address.empty()) continue;
    const auto other =
        std::ranges::find_if(ranks, [&](const PeerInfo& each) { return !rank.shares_network_with(each); });
    if (other == ranks.end()) return {};
    return Status(Code::unreachable,
                  rank.describe() + " advertises the address " + address + ", which is loopback, so " +
                      other->describe() +
                      " cannot reach it: they are on different hosts or in different network namespaces. On "
                      "host " +
                      rank.host +
                      ", set TUTTI_SOCKET_IFNAME to the network interface that leads to the other hosts, or "
                      "TUTTI_ADVERTISE_ADDRESS to its address; and TUTTI_BIND_ADDRESS must not be loopback",
                  rank.rank);
  }
  return {};
}

}  // namespace tutti
