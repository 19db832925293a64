#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <tutti/address.h>
#include <tutti/status.h>
#include <tutti/store_server.h>

#include "rendezvous/launch/environment.h"
#include "rendezvous/launch/interfaces.h"

namespace tutti::tools {

// A `MeetingPlace` lets the ranks of a job find each other. It has a store that this process
// serves, and a free port for a store of the program. It exists as long as the job.
struct MeetingPlace {
  std::unique_ptr<tcp::StoreServer> store;
  std::string address;  // a literal address of this host; both ports are at this address
  int master_port = 0;
};

// A meeting place has this address if all ranks of its job are on this host.
inline constexpr const char* loopback = "127.0.0.1";

// Serves the store on `address`, and finds a free port for `master_port`. `environment` holds the
// variables of the job. These variables decide how the store is protected, in the same way as the
// ranks' own connections. The store's port is one of TUTTI_PORT_RANGE if that is set and the
// address is not loopback.
Result<MeetingPlace> open_meeting_place(const Environment& environment, const std::string& address);

using RouteTo = std::function<std::optional<SocketAddress>(const SocketAddress& peer)>;

// A `MeetingAddress` is this host's address for a meeting place. `doubt` is empty, or tells the
// user why some of the hosts may not reach the address.
struct MeetingAddress {
  std::string address;
  std::string doubt;
};

// Chooses the address of a meeting place on this host. `all` are the interfaces of this host, and
// `peers` are the addresses of the job's other hosts. The result is loopback if there are no peers.
// Otherwise it is the address from which this host reaches the peers, or another address if the
// filter does not allow that one. `route_to` returns the address from which this host reaches a
// peer. Tests replace this function.
//
// Fails with `unreachable` if there is no route to any peer. Fails like `select_interfaces` if the
// filter matches nothing.
Result<MeetingAddress> address_among(std::span<const Interface> all, const InterfaceFilter& filter,
                                     std::span<const SocketAddress> peers,
                                     const RouteTo& route_to = route_source);

}  // namespace tutti::tools
