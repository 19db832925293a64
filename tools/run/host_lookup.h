#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tutti/address.h>
#include <tutti/status.h>

#include "tools/run/hostfile.h"

namespace tutti::tools {

// A `LocatedHost` is a host of the job, with the facts that this machine knows before it contacts
// the host.
struct LocatedHost {
  ListedHost listed;
  bool is_here = false;                  // the host is this machine
  std::optional<SocketAddress> address;  // empty if the name service does not (yet) know the host
};

// Looks up the names of all hosts at the same time, and waits for two seconds at most. A name that
// is still unknown after that is no error, since ssh may know it.
std::vector<LocatedHost> locate(const std::vector<ListedHost>& hosts);

// Returns the addresses of this machine at which the agents call back. `chosen` (--call-back) is an
// address, the name of an interface, or empty. Fails with `invalid_argument` if this machine does
// not have that address or interface.
Result<std::vector<SocketAddress>> call_back_addresses(std::span<const LocatedHost> hosts,
                                                       const std::string& chosen);

}  // namespace tutti::tools
