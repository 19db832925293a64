#pragma once

#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/topology.h"

namespace tutti::tools {

// `JobMachine` is what a rank knows about the hosts of its job. The costs and the topology are
// equal on all ranks.
struct JobMachine {
  int rank = 0;
  CostModel model;
  Topology topology;
};

// Makes this process a rank of the job that `tutti run` has started, and measures the costs of
// messages together with the other ranks. It makes several measurements, and uses the median for
// each class of connection. Throws `Error` if the ranks cannot meet.
JobMachine measure_job();

// Returns whether a message of 100 KB takes less time over `link` than over `other`.
bool is_faster(const LinkCost& link, const LinkCost& other);

// The costs are measured this many times.
inline constexpr int measurements = 5;

}  // namespace tutti::tools
