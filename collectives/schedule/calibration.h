#pragma once

#include <tutti/communicator.h>

#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/topology.h"

namespace tutti {

// `agree_on_costs` measures the costs of messages, and returns the costs that all ranks agree on.
// For each class of connection, one pair of ranks exchanges messages for a few milliseconds. Within
// a host, the pair is the first two ranks of the first host that has two ranks. Between hosts, the
// pair is the first rank of the first host and the first rank of the second host. Rank 0 measures
// how fast it combines elements, and sends all costs to the other ranks. A class without such a
// pair keeps its costs from `shipped`. If `measuring` is false, nothing is measured, and all ranks
// use rank 0's `shipped`.
//
// Every rank must call this function, and it blocks. The communicator must be used for nothing else. Throws
// `Error` if the communicator fails.
CostModel agree_on_costs(Communicator& communicator, const Topology& topology, const CostModel& shipped,
                         bool measuring);

// Returns `measured` if it is plausible, and otherwise `shipped`. It is plausible if its latency and
// bandwidth differ from those of `shipped` by at most `factor`. A larger difference probably means that other
// programs used the cores during the measurement. The remaining figures (gap, busy, busy_byte, handshake) are
// kept within bounds that follow from latency and bandwidth.
LinkCost plausible(const LinkCost& measured, const LinkCost& shipped, double factor);

}  // namespace tutti
