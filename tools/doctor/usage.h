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
  std::vector<std::string> addresses = {};  // one for each interface that is used
  std::string problem = {};                 // why there are none: TUTTI_SOCKET_IFNAME matches nothing
};

// Returns where a job would meet whose rank 0 is on the host `first`. `peers` are literal addresses of the
// other hosts, and `routes` the addresses from which packets to them leave on `first`.
Result<MeetingAddress> meeting_of(const HostFacts& first, const std::vector<std::string>& peers,
                                  const std::vector<std::string>& routes);

// Returns what a host uses if packets to the meeting place leave from its address `route`, which may be
// empty.
Usage usage_of(const HostFacts& facts, const std::string& route);

// Returns the interface that has the address, or null.
const InterfaceFacts* owner_of(const HostFacts& facts, const std::string& address);
// Returns the network of a host's address: "10.203.0.0/24". Returns an empty text if that is not known.
std::string network_of(const HostFacts& facts, const std::string& address);
// Returns whether `address` is in the network.
bool is_in(const std::string& network, const std::string& address);

// A `Resident` is a host as the choice of targets sees it.
struct Resident {
  const HostFacts* facts;
  const Usage* usage;
};

// Returns those addresses of the host `to` that the host `from` should test; see docs/doctor.md.
std::vector<Target> targets_of(std::span<const Resident> hosts, std::size_t from, std::size_t to);

}  // namespace tutti::tools::doctor
