#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <tutti/reduce_op.h>
#include <tutti/types.h>

#include "tools/bench/operation.h"
#include "tools/commands.h"

namespace tutti::tools {

// `BenchOptions` holds what the command line of `tutti bench` asks for.
struct BenchOptions {
  std::vector<const MeasuredInfo*> measured;
  int launch_ranks = 0;  // the number of ranks to start; 0 if this process is itself a rank
  std::uint64_t min_bytes = 8;
  std::uint64_t max_bytes = 16 << 20;
  std::uint64_t factor = 4;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::string transport;  // empty for the default
  std::string algorithm;  // empty for the selector's choice
  int iterations = 0;     // batches for each size; 0 means as many as fit in `budget`
  int warmup = 0;         // operations before measuring; 0 means a number chosen by time
  int batch = 0;          // operations in a batch; 0 means a number chosen by time
  std::chrono::milliseconds budget{200};
  std::string csv;

  std::vector<std::uint64_t> sizes(const MeasuredInfo& info) const;
};

// Returns the options. For --help it prints the help, and for a wrong option it prints an error. In
// these two cases it returns an exit status instead of options, and the command must end at once
// with this status.
std::variant<BenchOptions, int> parse_bench_options(const Arguments& arguments);

// Returns the arguments with which `tutti bench` starts its ranks, so that the ranks make the measurements
// that `arguments` asks for.
Arguments arguments_of_rank(const Arguments& arguments);

}  // namespace tutti::tools
