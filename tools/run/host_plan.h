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
  std::vector<LocatedHost> hosts;  // none if all ranks run on this machine, as children of the launcher
  std::optional<int> ranks;        // on all hosts together; empty if `placed` is
  // The hosts with their ranks. Empty if a host must be asked for its number of slots first. Otherwise every
  // host has ranks.
  std::optional<std::vector<PlacedHost>> placed;
  StartCommand way;
  std::string remark;  // tells the user who has chosen the hosts; may be empty
};

// Finds the hosts, and places the ranks if all numbers of slots are known. The errors concern the options.
Result<HostPlan> plan_hosts(const RunOptions& options, const Environment& environment);

// Places the ranks on the hosts. `processors` holds the number of processors of each host, which counts for a
// host without a number of slots.
Result<std::vector<PlacedHost>> place_ranks(const std::vector<LocatedHost>& hosts,
                                            const std::vector<int>& processors,
                                            const PlacementOptions& options);

// Returns the number of ranks on all hosts together.
int ranks_on(const std::vector<PlacedHost>& hosts);

}  // namespace tutti::tools
