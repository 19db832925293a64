#pragma once

#include <tutti/communicator.h>

#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/topology.h"

namespace tutti {

// `agree_on_costs` measures the costs of messages, and returns the costs that all ranks agree on. One pair of
// ranks for each class of connection exchanges messages for a few milliseconds: the first two ranks of the
// first host that has two, and the first ranks of the first two hosts. Rank 0 measures how fast it combines
// elements, and sends all costs to the other ranks. A class without such a pair keeps its costs from
// `shipped`. If `measuring` is false, nothing is measured, and all ranks use rank 0's `shipped`.
//
// This is collective and blocks: every rank must call it, on a communicator that is used for nothing else.
// Throws `Error` if the communicator fails.
CostModel agree_on_costs(Communicator& communicator, const Topology& topology, const CostModel& shipped,
                         bool measuring);

// Returns `measured`. Returns `shipped` instead if the measured costs are impossible, or if their latency or
// bandwidth differ from the shipped ones by more than `factor`: then other programs probably used the cores
// during the measurement. Figures that are differences of measurements (gap, busy, busy_byte, handshake) are
// limited to bounds that follow from latency and bandwidth.
LinkCost plausible(const LinkCost& measured, const LinkCost& shipped, double factor);

}  // namespace tutti
