#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "rendezvous/launch/environment.h"
#include "tools/run/host_lookup.h"
#include "tools/run/options.h"
#include "tools/run/placement.h"
#include "tools/run/start_command.h"

namespace tutti::tools {

// A `HostPlan` says on which hosts the ranks of a job run, and how the hosts are reached.
struct HostPlan {
  // Empty if all ranks run on this machine, as children of the launcher.
  std::vector<LocatedHost> hosts;
  std::optional<int> ranks;  // the number of ranks of the job; empty if it is not known yet
  // The ranks of each host. Every host has ranks. This is empty if the job has no list of hosts, or if
  // a host's number of slots is not known yet.
  std::optional<std::vector<PlacedHost>> placed;
  StartCommand way;
  std::string remark;  // tells the user where the list of hosts came from; may be empty
};

// Finds the hosts, and places the ranks if all numbers of slots are known. Errors are about the
// options.
Result<HostPlan> plan_hosts(const RunOptions& options, const Environment& environment);

// Places the ranks on the hosts. `processors` holds the number of processors of each host. A host
// without a number of slots has one slot for each processor, up to `ListedHost::most`.
Result<std::vector<PlacedHost>> place_ranks(const std::vector<LocatedHost>& hosts,
                                            const std::vector<int>& processors,
                                            const PlacementOptions& options);

// Returns the number of ranks on all hosts together.
int ranks_on(const std::vector<PlacedHost>& hosts);

}  // namespace tutti::tools
