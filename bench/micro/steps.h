#pragma once

#include <cstdint>

#include <benchmark/benchmark.h>

#include "collectives/schedule/problem.h"
#include "collectives/schedule/schedule.h"

namespace tutti::perf {

// The microbenchmarks execute schedules of this many steps. Each step has two float32 elements, so little
// work that the executor takes almost all of the time.
inline constexpr std::uint32_t steps = 64;
inline constexpr std::uint64_t elements = 2;

inline Problem stepwise_problem(int rank, int size) {
  Problem made;
  made.kind = CollectiveKind::all_reduce;
  made.rank = rank;
  made.size = size;
  made.count = steps * elements;
  made.element_size = sizeof(float);
  return made;
}

inline Slice stepwise_slice(BufferId buffer, std::uint32_t index) {
  return {buffer, index * elements, elements};
}

// Makes the results show the time of one step, next to the time of an iteration.
inline void count_steps(benchmark::State& state, std::size_t in_an_iteration) {
  state.counters["per_step"] =
      benchmark::Counter(static_cast<double>(in_an_iteration),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

}  // namespace tutti::perf
