#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "tools/doctor/facts.h"
#include "tools/doctor/path.h"
#include "tools/run/meeting_place.h"

namespace tutti::tools::doctor {

// `Usage` says where the ranks of a host would listen in a job.
struct Usage {
  std::vector<std::string> addresses = {};  // one address for each interface that a job would use
  // This says why there are no addresses; for example, TUTTI_SOCKET_IFNAME matches nothing.
  std::string problem = {};
};

// Returns the address at which a job would meet if its rank 0 were on the host `first`. `peers` are
// literal addresses of the other hosts. `routes` are the local addresses from which `first` sends
// packets to these peers.
Result<MeetingAddress> meeting_of(const HostFacts& first, const std::vector<std::string>& peers,
                                  const std::vector<std::string>& routes);

// Returns what a host would use in a job. `route` is the host's address from which packets to the
// meeting place leave, or empty.
Usage usage_of(const HostFacts& facts, const std::string& route);

// Returns the interface that has the address, or null.
const InterfaceFacts* owner_of(const HostFacts& facts, const std::string& address);
// Returns the network of a host's address: "10.203.0.0/24". Returns an empty text if the network is
// not known.
std::string network_of(const HostFacts& facts, const std::string& address);
// Returns whether `address` is in the network.
bool is_in(const std::string& network, const std::string& address);

// A `Resident` is a host with the facts that the choice of targets needs.
struct Resident {
  const HostFacts* facts;
  const Usage* usage;
};

// Returns the addresses of the host `to` that the host `from` should test (docs/doctor.md).
std::vector<Target> targets_of(std::span<const Resident> hosts, std::size_t from, std::size_t to);

}  // namespace tutti::tools::doctor
