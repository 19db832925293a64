#pragma once

#include <cstdint>
#include <fstream>

#include "tools/bench/measure.h"

namespace tutti::tools {

// `Report` writes the table on stdout and the CSV file. Only rank 0 makes a `Report`.
class Report {
 public:
  // Throws std::runtime_error if the file cannot be written.
  Report(const BenchOptions& options, int ranks);

  void begin(const MeasuredInfo& info);
  // Adds a row. `asked` is the size in bytes that the user asked for. The real size may differ,
  // since the vector consists of whole elements. A wrong result gets no row in the CSV file.
  void add(const MeasuredInfo& info, std::uint64_t asked, const BenchOperation& operation,
           const Measurement& found);

 private:
  const BenchOptions& options_;
  const int ranks_;
  std::ofstream csv_;
};

}  // namespace tutti::tools
