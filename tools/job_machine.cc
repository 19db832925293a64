#include "tools/job_machine.h"

#include <algorithm>

#include <tutti/init.h>

#include "collectives/group/world.h"
#include "collectives/schedule/calibration.h"

namespace tutti::tools {

JobMachine measure_job() {
  Communicator communicator = init();
  const World& world = world_of(communicator);
  CostModel best = world.selector.model();
  for (int i = 1; i < measurements; ++i) {
    const CostModel next = agree_on_costs(communicator, world.topology, best, true);
    if (is_faster(next.near, best.near)) best.near = next.near;
    if (is_faster(next.far, best.far)) best.far = next.far;
    best.gamma = std::min(best.gamma, next.gamma);
  }
  return {communicator.rank(), best, world.topology};
}

bool is_faster(const LinkCost& link, const LinkCost& other) {
  constexpr double bytes = 1e5;  // of a message that both latency and bandwidth matter for
  return link.alpha + bytes * link.beta < other.alpha + bytes * other.beta;
}

}  // namespace tutti::tools
