#pragma once

#include <cstdint>

#include "collectives/schedule/algorithm.h"

namespace tutti {

// A `Simulation` is the result of running a collective on a model machine.
struct Simulation {
  double seconds = 0;                // until the last rank has finished; per repetition
  std::uint64_t messages = 0;        // of all ranks
  std::uint64_t bytes = 0;           // of all ranks
  std::uint64_t max_rank_bytes = 0;  // sent by the busiest rank
  std::uint64_t max_host_bytes = 0;  // sent to other hosts by the busiest host
};

// Runs the schedules of all `problem.size` ranks on the model machine (see CostModel). Each rank has one port
// to send and one to receive, each in first come, first served order. A host has one such pair for messages
// to other hosts. A rank does one thing at a time (send, take in, combine, copy), on one of its host's cores.
//
// `repetitions`: as in a loop, a rank starts the next repetition as soon as it has finished one; messages and
// bytes are those of all repetitions together. `problem.rank` is ignored. Counts of the _v kinds are those of
// all ranks; all_to_all_v, whose counts do not fit into a single problem, gives zeros. The simulation is
// event-driven and deterministic.
Simulation simulate(const Algorithm& algorithm, const Problem& problem, const Tuning& tuning,
                    const CostModel& model, int repetitions = 1);

}  // namespace tutti
