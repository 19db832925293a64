#include "tools/job_machine.h"

#include <algorithm>
#include <vector>

#include <tutti/init.h>

#include "collectives/group/world.h"
#include "collectives/schedule/calibration.h"

namespace tutti::tools {
namespace {

// Returns the median of several measurements of a class of connection.
LinkCost middle(std::vector<LinkCost> links) {
  const auto place = links.begin() + static_cast<std::ptrdiff_t>(links.size() / 2);
  std::ranges::nth_element(links, place, is_faster);
  return *place;
}

}  // namespace

JobMachine measure_job() {
  Communicator communicator = init();
  const World& world = world_of(communicator);
  CostModel model = world.selector.model();
  std::vector<LinkCost> near = {model.near}, far = {model.far};
  for (int i = 1; i < measurements; ++i) {
    const CostModel next = agree_on_costs(communicator, world.topology, model, true);
    near.push_back(next.near);
    far.push_back(next.far);
    model.gamma = std::min(model.gamma, next.gamma);
  }
  model.near = middle(near);
  model.far = middle(far);
  return {communicator.rank(), model, world.topology};
}

bool is_faster(const LinkCost& link, const LinkCost& other) {
  // For a message of this size, both latency and bandwidth matter.
  constexpr double bytes = 1e5;
  return link.alpha + bytes * link.beta < other.alpha + bytes * other.beta;
}

}  // namespace tutti::tools
