#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tutti/address.h>
#include <tutti/status.h>

#include "tools/run/hostfile.h"

namespace tutti::tools {

// A `LocatedHost` is a host of the job with what this machine can tell about it before it has been contacted.
struct LocatedHost {
  ListedHost listed;
  bool is_here = false;                  // it is this machine
  std::optional<SocketAddress> address;  // empty if the name service does not know the host, or not yet
};

// Looks up the names of all hosts at the same time. Waits for two seconds at most: a host whose name is still
// unknown then may be known to ssh.
std::vector<LocatedHost> locate(const std::vector<ListedHost>& hosts);

// Returns the addresses of this machine on which the agents of the hosts call back. `chosen` (--call-back) is
// empty, or an address or the name of an interface. Fails with `invalid_argument` if this machine does not
// have it.
Result<std::vector<SocketAddress>> call_back_addresses(std::span<const LocatedHost> hosts,
                                                       const std::string& chosen);

}  // namespace tutti::tools
