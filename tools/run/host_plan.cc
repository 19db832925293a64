#include "tools/run/host_plan.h"

#include <algorithm>
#include <utility>

#include "tools/processors.h"
#include "tools/run/host_source.h"

namespace tutti::tools {
namespace {

// Drops the hosts without ranks.
void keep_placed(HostPlan& plan) {
  std::vector<LocatedHost> hosts;
  for (PlacedHost& placed : *plan.placed) {
    hosts.push_back(plan.hosts[placed.index]);
    placed.index = hosts.size() - 1;
  }
  plan.hosts = std::move(hosts);
}

}  // namespace

Result<HostPlan> plan_hosts(const RunOptions& options, const Environment& environment) {
  Result<HostSource> source = find_hosts(options, environment);
  if (!source.ok()) return source.status();
  HostPlan plan;
  plan.hosts = locate(source->hosts);
  plan.way = source->start_command;
  plan.remark = source->remark;
  if (plan.hosts.empty()) {
    plan.ranks = options.placement.ranks;
    if (plan.ranks) return plan;
    return Status(Code::invalid_argument,
                  "-n N, the number of ranks, is required without hosts; -n auto counts processors");
  }
  const bool all_known = std::ranges::all_of(
      plan.hosts, [](const LocatedHost& host) { return host.is_here || host.listed.slots; });
  if (!all_known) return plan;
  const std::vector<int> processors(plan.hosts.size(), usable_processors());
  Result<std::vector<PlacedHost>> placed = place_ranks(plan.hosts, processors, options.placement);
  if (!placed.ok()) return placed.status();
  plan.placed = *std::move(placed);
  plan.ranks = ranks_on(*plan.placed);
  keep_placed(plan);
  if (plan.hosts.size() == 1 && plan.hosts.front().is_here) plan.hosts.clear();
  return plan;
}

Result<std::vector<PlacedHost>> place_ranks(const std::vector<LocatedHost>& hosts,
                                            const std::vector<int>& processors,
                                            const PlacementOptions& options) {
  std::vector<SlottedHost> slotted;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const ListedHost& listed = hosts[i].listed;
    const int most = std::min(processors[i], listed.most.value_or(processors[i]));
    slotted.push_back({.slots = listed.slots.value_or(most), .most = listed.most});
  }
  return place(slotted, options);
}

int ranks_on(const std::vector<PlacedHost>& hosts) {
  std::size_t ranks = 0;
  for (const PlacedHost& host : hosts) ranks += host.ranks.size();
  return static_cast<int>(ranks);
}

}  // namespace tutti::tools
