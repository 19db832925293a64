#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tutti/address.h>
#include <tutti/status.h>

namespace tutti {

// An `Interface` is a network interface that is up.
struct Interface {
  std::string name;
  bool loopback = false;
  std::vector<SocketAddress> addresses;  // port 0; IPv4 first, link-local IPv6 last
};

Result<std::vector<Interface>> list_interfaces();

// `InterfaceFilter` is the user's choice of interfaces, and the variable that states it.
struct InterfaceFilter {
  std::string text;  // empty: no choice
  std::string variable;
};

// The first of these that is not empty: TUTTI_SOCKET_IFNAME (given), NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME
// (from the process's environment).
InterfaceFilter interface_filter(const std::string& tutti_socket_ifname);

// Returns the interfaces to use, best first, each only with the addresses to use.
//
// With a filter: those that match, in its order. It is a comma list of name prefixes and CIDR blocks
// ("10.0.0.0/8"); a leading ^ takes all but those (and never loopback), a leading = compares whole names.
// `invalid_argument` if nothing matches, naming the variable and what there is.
//
// Without: the one that owns `route`, the local address of packets to the store (none: not known). Bridges
// and virtual cards of containers and hypervisors are skipped; loopback is taken only if the route is
// loopback, or if there is nothing else.
Result<std::vector<Interface>> select_interfaces(std::span<const Interface> all,
                                                 const InterfaceFilter& filter,
                                                 const std::optional<SocketAddress>& route);

}  // namespace tutti
