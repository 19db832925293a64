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
  std::vector<SocketAddress> addresses;  // with port 0; IPv4 first, link-local IPv6 last
};

Result<std::vector<Interface>> list_interfaces();

// `InterfaceFilter` has the user's choice of interfaces, and the name of the variable that contains it.
struct InterfaceFilter {
  std::string text;  // empty if the user has made no choice
  std::string variable;
};

// Returns the first of these that is not empty: TUTTI_SOCKET_IFNAME (the argument), NCCL_SOCKET_IFNAME and
// GLOO_SOCKET_IFNAME (from the process's environment).
InterfaceFilter interface_filter(const std::string& tutti_socket_ifname);

// Returns the interfaces to use, best first, each only with the addresses to use.
//
// With a filter, these are the interfaces that match it, in the filter's order. A filter is a comma-separated
// list of name prefixes and CIDR blocks ("10.0.0.0/8"). With a leading ^, the interfaces that do not match
// are chosen instead, but never loopback. With a leading = or ^=, whole names are compared. If nothing
// matches, the function fails with `invalid_argument`, and the error names the variable and the interfaces
// that exist.
//
// Without a filter, the result is the interface that owns the address `route` (this host's address on the
// route to the store). If no interface owns that address, the result is the first usable interface. Bridges
// and virtual cards of containers and hypervisors are skipped. Loopback is used only if the route is
// loopback, or if there is nothing else.
Result<std::vector<Interface>> select_interfaces(std::span<const Interface> all,
                                                 const InterfaceFilter& filter,
                                                 const std::optional<SocketAddress>& route);

}  // namespace tutti
