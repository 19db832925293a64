#pragma once

#include <cstdint>

#include "collectives/schedule/algorithm.h"

namespace tutti {

// A `Simulation` is the result of running a collective on a model machine.
struct Simulation {
  double seconds = 0;                // until the last rank has finished; per repetition
  std::uint64_t messages = 0;        // sent by all ranks
  std::uint64_t bytes = 0;           // sent by all ranks
  std::uint64_t max_rank_bytes = 0;  // sent by the busiest rank
  std::uint64_t max_host_bytes = 0;  // sent to other hosts by the busiest host
};

// Runs the schedules of all `problem.size` ranks on the model machine (see CostModel). Each rank has one port
// to send and one to receive. A host has two more ports, for messages to and from other hosts. A port serves
// messages in the order in which they come. A rank does one thing at a time (send, take in, combine, copy),
// on one of its host's cores. Each group of `CostModel::hosts_per_machine` hosts with consecutive
// numbers shares the cores of one machine.
//
// Each rank runs the collective `repetitions` times in a loop: it starts the next repetition as soon as it
// has finished one. Messages and bytes are those of all repetitions together. `problem.rank` is ignored. For
// the _v kinds, `problem` must have the counts of all ranks. The result of all_to_all_v is all zeros, because
// its counts do not fit into a single problem. The simulation is event-driven and deterministic.
Simulation simulate(const Algorithm& algorithm, const Problem& problem, const Tuning& tuning,
                    const CostModel& model, int repetitions = 1);

}  // namespace tutti
