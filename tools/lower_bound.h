#pragma once

#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/problem.h"

namespace tutti::tools {

// What no algorithm can beat on the model machine, in seconds, each for its own reason. The bytes: Chan,
// Heimlich, Purkayastha, van de Geijn, "Collective communication: theory, practice, and experience" (2007),
// table 1. The latency: a sender is free for the next message before the first has arrived, so that the
// number of ranks that can know something grows as in the postal model of Bar-Noy and Kipnis, "Designing
// broadcasting algorithms in the postal model for message-passing systems" (1992), N(t) = N(t - gap) + N(t -
// alpha). Between hosts the same, for hosts in place of ranks. Needs near <= far. Ranks that may share memory
// (`Problem::window_bytes`) need no messages: there it takes one signal, and what has to be combined and
// copied until all have their results, by as many cores as there are.
struct LowerBound {
  double latency = 0;    // until what one rank knows can have reached all
  double bandwidth = 0;  // bytes that have to pass one rank's port, or one host's
  double compute = 0;    // bytes that one rank has to combine; where ranks share memory, to combine and copy
  bool shared = false;   // what ranks that share memory need is less than what messages need
  double seconds() const;
};

LowerBound lower_bound(const Problem& problem, const CostModel& model);

}  // namespace tutti::tools
