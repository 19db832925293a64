#pragma once

#include <cstdint>

#include "collectives/schedule/algorithm.h"

namespace tutti {

// A `Simulation` is the result of running a collective on a model machine.
struct Simulation {
  double seconds = 0;                // until the last rank has finished; a repetition
  std::uint64_t messages = 0;        // over all ranks
  std::uint64_t bytes = 0;           // over all ranks
  std::uint64_t max_rank_bytes = 0;  // sent by the busiest rank
  std::uint64_t max_host_bytes = 0;  // sent to other hosts by the busiest host
};

// Runs the schedules of all `problem.size` ranks on the model machine (see CostModel): each rank has one port
// to send and one to receive, each in first come, first served order; a host has one such pair for messages
// to other hosts. A rank does one thing at a time (send, take in, combine, copy), on one of its host's cores.
// `repetitions`: a rank starts the next as soon as it has finished one, as in a loop; messages and bytes are
// those of all together. `problem.rank` is ignored; counts of the _v kinds are those of all ranks. Event
// driven; deterministic. all_to_all_v, whose counts a single problem cannot hold, gives zeros.
Simulation simulate(const Algorithm& algorithm, const Problem& problem, const Tuning& tuning,
                    const CostModel& model, int repetitions = 1);

}  // namespace tutti
