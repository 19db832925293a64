#pragma once

#include <tutti/communicator.h>

#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/topology.h"

namespace tutti {

// `agree_on_costs` measures the costs of messages, and returns the costs that all ranks agree on: one pair of
// ranks for each class of connection (the first two ranks of the first host that has two; the first ranks of
// the first two hosts) exchanges messages for a few milliseconds; rank 0 measures its kernels, and publishes
// all costs. A class without such a pair keeps its costs from `shipped`. With `measuring` false nothing is
// measured, and all ranks agree on rank 0's `shipped`.
//
// Collective and blocking; every rank calls it, on a communicator that is used for nothing else. Throws
// `Error` if the communicator fails.
CostModel agree_on_costs(Communicator& communicator, const Topology& topology, const CostModel& shipped,
                         bool measuring);

// Returns `measured`, or `shipped` if those costs are impossible, or if latency or bandwidth differ by more
// than `factor`: then other programs used the cores during the measurement. A figure that is a difference of
// others is bounded by those.
LinkCost plausible(const LinkCost& measured, const LinkCost& shipped, double factor);

}  // namespace tutti
