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

// A `MeetingPlace` is where the ranks of a job find each other: a store that this process serves, and a port
// for a store that a program may serve itself. It exists as long as the job.
struct MeetingPlace {
  std::unique_ptr<tcp::StoreServer> store;
  std::string address;  // a literal address of this host, which belongs to both ports
  int master_port = 0;
};

// A meeting place has this address if all ranks of its job are on this host.
inline constexpr const char* loopback = "127.0.0.1";

// Serves the store on `address`, and finds a free port for `master_port`. The variables of the job,
// `environment`, decide how the store is protected: in the same way as the ranks' own connections. Unless the
// address is loopback, the store's port is one of TUTTI_PORT_RANGE if that is set.
Result<MeetingPlace> open_meeting_place(const Environment& environment, const std::string& address);

using RouteTo = std::function<std::optional<SocketAddress>(const SocketAddress& peer)>;

// A `MeetingAddress` is this host's address for a meeting place. `doubt` is empty, or a text for the user:
// why some of the hosts may not reach the address.
struct MeetingAddress {
  std::string address;
  std::string doubt;
};

// Chooses the address of a meeting place on this host, whose interfaces are `all`. `peers` are the addresses
// of the job's other hosts; if there are none, the result is loopback. Otherwise it is the address from which
// this host reaches them. If the filter leaves out that address, the result is one that the filter allows.
// Tests replace `route_to`, which tells the address from which this host reaches a peer.
//
// Fails with `unreachable` if there is no route to any peer, and as `select_interfaces` if the filter matches
// nothing.
Result<MeetingAddress> address_among(std::span<const Interface> all, const InterfaceFilter& filter,
                                     std::span<const SocketAddress> peers,
                                     const RouteTo& route_to = route_source);

}  // namespace tutti::tools
