#pragma once

#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/problem.h"

namespace tutti::tools {

// A `LowerBound` is a time in seconds that no algorithm can beat on the model machine, each part for its own
// reason. The bytes: Chan, Heimlich, Purkayastha, van de Geijn, "Collective communication: theory, practice,
// and experience" (2007), table 1. The latency: a sender is free for the next message before the first has
// arrived, so that the number of ranks that can know something grows as in the postal model of Bar-Noy and
// Kipnis, "Designing broadcasting algorithms in the postal model for message-passing systems" (1992), N(t) =
// N(t - gap) + N(t - alpha). The same holds between hosts, with hosts in place of ranks, if near <= far.
// Ranks that may share memory (`Problem::window_bytes`) need no messages: their bound is one signal, and the
// time to combine and copy all results on as many cores as there are.
struct LowerBound {
  double latency = 0;    // until a rank's data can have reached all
  double bandwidth = 0;  // bytes that have to pass one rank's port, or one host's
  double compute = 0;    // bytes that one rank has to combine; where ranks share memory, to combine and copy
  bool shared = false;   // ranks that share memory need less time than messages
  double seconds() const;
};

LowerBound lower_bound(const Problem& problem, const CostModel& model);

}  // namespace tutti::tools
