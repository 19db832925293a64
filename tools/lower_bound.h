#pragma once

#include "collectives/schedule/cost_model.h"
#include "collectives/schedule/problem.h"

namespace tutti::tools {

// A `LowerBound` is a time in seconds that no algorithm can beat on the model machine. It is the
// largest of three parts: latency, bandwidth and computation. The bandwidth part is from Chan,
// Heimlich, Purkayastha, van de Geijn, "Collective communication: theory, practice, and experience"
// (2007), table 1. The latency part is the postal model of Bar-Noy and Kipnis, "Designing
// broadcasting algorithms in the postal model for message-passing systems" (1992). In this model a
// sender can send its next message before the previous one has arrived. N(t) is the largest number
// of ranks that the data of one rank can reach by time t. Then N(t) = N(t - gap) + N(t - alpha),
// with `gap` and `alpha` of `LinkCost`.
//
// The latency and bandwidth parts also hold between hosts, with hosts in place of ranks, if all hosts
// have equally many ranks, and if `near` costs no more than `far` (`CostModel`).
//
// Ranks that may share memory (`Problem::window_bytes`) need no messages. Their bound is the longer of
// two times: the time of one signal, and the time to combine and copy all results on all cores. Ranks
// that share memory may also use messages, so `lower_bound` returns the smaller of this bound and the
// bound for messages.
struct LowerBound {
  double latency = 0;    // the time until one rank's data can have reached all ranks
  double bandwidth = 0;  // the time for the bytes that must pass the port of one rank or host
  double compute = 0;    // the time to combine bytes; with shared memory, also to copy them
  bool shared = false;   // the bound is for ranks that share memory
  double seconds() const;
};

LowerBound lower_bound(const Problem& problem, const CostModel& model);

}  // namespace tutti::tools
