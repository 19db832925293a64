#pragma once

#include <cstdint>
#include <vector>

#include <tutti/collectives/selector.h>

namespace tutti {

struct Simulation {
  double seconds = 0;               // until the last rank has finished
  std::uint64_t messages = 0;       // over all ranks
  std::uint64_t bytes = 0;          // over all ranks
  std::uint64_t max_rank_bytes = 0; // sent by the busiest rank
};

// Runs the schedules of all `problem.size` ranks on a model machine: each rank has one port to send and one to
// receive (a message of n bytes occupies either for n * beta and arrives alpha later) and one core (gamma a byte
// for combining). Event driven; deterministic.
Simulation simulate(const Algorithm& algorithm, const Problem& problem, const Tuning& tuning, const CostModel& model);

}  // namespace tutti
