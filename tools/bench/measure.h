#pragma once

#include <cstdint>
#include <vector>

#include "tools/bench/operation.h"
#include "tools/bench/options.h"

namespace tutti::tools {

// A `Measurement` is the result at one size. It is the same on all ranks.
struct Measurement {
  // The number of wrong elements on all ranks, found by the checks before and after timing.
  std::uint64_t wrong = 0;
  double median_us = 0;
  double p99_us = 0;
  double min_us = 0;
  std::uint64_t batches = 0;
  std::uint64_t operations = 0;  // per batch
};

// Measures `operation` at its size. All ranks must call this together, with the same arguments. Throws
// `Error`.
Measurement measure(Communicator& communicator, const MeasuredInfo& info, BenchOperation& operation,
                    const BenchOptions& options);

}  // namespace tutti::tools
