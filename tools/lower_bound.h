#pragma once

#include <tutti/collectives/cost_model.h>
#include <tutti/collectives/problem.h>

namespace tutti::tools {

// What no algorithm can beat on the model machine, in seconds, each for its own reason; see Chan, Heimlich,
// Purkayastha, van de Geijn: "Collective communication: theory, practice, and experience" (2007), table 1.
struct LowerBound {
  double latency = 0;    // rounds until what one rank knows can have reached all
  double bandwidth = 0;  // bytes that have to pass one rank's port
  double compute = 0;    // bytes that one rank has to combine
  double seconds() const;
};

LowerBound lower_bound(const Problem& problem, const CostModel& model);

}  // namespace tutti::tools
