#pragma once

#include <tutti/communicator.h>

#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/topology.h"

namespace tutti {

// What `measured` says, but `shipped` if it cannot be, or if latency or bandwidth differ from it by more than
// `factor`: then somebody else had the cores meanwhile. Figures that are differences of others are bounded by
// these.
LinkCost plausible(const LinkCost& measured, const LinkCost& shipped, double factor);

// Measures what messages cost and returns what all ranks agree on: one pair of ranks for each class of
// connection (the first two ranks of the first host that has two; the first ranks of the first two hosts)
// exchanges messages for a few milliseconds, rank 0 measures its kernels, and tells everybody. What there is
// no pair for stays as in `shipped`. With `measuring` false nothing is measured: rank 0's `shipped` is agreed
// on.
//
// Collective and blocking; every rank calls it, on a communicator that is used for nothing else. Throws
// `Error` if the communicator fails.
CostModel agree_on_costs(Communicator& communicator, const Topology& topology, const CostModel& shipped,
                         bool measuring);

}  // namespace tutti
