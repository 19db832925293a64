#pragma once

#include <cstdint>
#include <fstream>

#include "tools/bench/measure.h"

namespace tutti::tools {

// The table on stdout and the CSV file. Used by rank 0 only.
class Report {
 public:
  // Throws std::runtime_error if the file cannot be written.
  Report(const BenchOptions& options, int ranks);

  void begin(const MeasuredInfo& info);
  // `asked`: the size as it was asked for; `operation` knows the true one. A wrong result makes no CSV row.
  void add(const MeasuredInfo& info, std::uint64_t asked, const BenchOperation& operation,
           const Measurement& found);

 private:
  const BenchOptions& options_;
  const int ranks_;
  std::ofstream csv_;
};

}  // namespace tutti::tools
