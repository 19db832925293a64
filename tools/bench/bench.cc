#include <algorithm>
#include <iostream>
#include <optional>
#include <stdexcept>

#include <unistd.h>

#include <tutti/config.h>
#include <tutti/config_values.h>
#include <tutti/init.h>

#include "core/memory_limit.h"
#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/command_line.h"
#include "tools/run/run.h"

namespace tutti::tools {
namespace {

std::string own_program() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "tutti";
}

// Returns whether the machine has enough memory, and tells the user if it does not. The check is
// needed because the kernel lets each rank allocate more memory than there is. It then kills the
// ranks when they fill that memory.
bool fits_in_memory(const BenchOptions& options) {
  const auto config = Config::from_environment();
  const int given = config.ok() ? config->local_world_size.value_or(1) : 1;
  const int ranks = std::max(1, options.launch_ranks > 0 ? options.launch_ranks : given);
  const std::uint64_t limit = memory_limits().least();
  if (options.max_bytes <= limit / 2 / static_cast<std::uint64_t>(ranks)) return true;
  std::cerr << "tutti bench: each rank needs two buffers of " << format_size(options.max_bytes)
            << ", and for " << ranks << " here there are " << limit
            << " bytes of memory: give a smaller --max-bytes\n";
  return false;
}

int launch_ranks(const BenchOptions& options, const Arguments& arguments) {
  RunOptions run;
  run.placement.ranks = options.launch_ranks;
  // The ranks stay on this machine, even inside a Slurm job.
  run.hosts = {"127.0.0.1:" + std::to_string(options.launch_ranks)};
  run.program = {own_program(), "bench"};
  for (const std::string& word : arguments_of_rank(arguments)) run.program.push_back(word);
  return launch(run);
}

// Opens `report` on rank 0. Returns false on all ranks if the report cannot be written. If only
// rank 0 stopped, the other ranks would continue and report that rank 0 has left.
bool open_report(Communicator& communicator, const BenchOptions& options, std::optional<Report>& report) {
  std::uint8_t open[] = {1};
  if (communicator.rank() == 0) {
    try {
      report.emplace(options, communicator.size());
    } catch (const std::runtime_error& error) {
      std::cerr << "tutti bench: " << error.what() << "\n";
      open[0] = 0;
    }
  }
  communicator.broadcast(Buffer(open), 0).wait();
  return open[0] == 1;
}

// Measures the requested operations at all sizes, and reports the results. Returns whether every result was
// right.
bool measure_all(Communicator& communicator, const BenchOptions& options) {
  std::optional<Report> report;
  if (!open_report(communicator, options, report)) return false;
  std::uint64_t wrong = 0;
  for (const MeasuredInfo* info : options.measured) {
    if (info->what == Measured::pingpong && communicator.size() != 2) {
      if (report) std::cout << "#\n# pingpong needs two ranks\n";
      continue;
    }
    if (report) report->begin(*info);
    for (const std::uint64_t bytes : options.sizes(*info)) {
      BenchOperation operation(communicator, *info, bytes, options.type, options.op,
                               {.algorithm = options.algorithm});
      const Measurement found = measure(communicator, *info, operation, options);
      wrong += found.wrong;
      if (report) report->add(*info, bytes, operation, found);
    }
  }
  if (wrong > 0 && report) std::cerr << "tutti bench: " << wrong << " elements were wrong\n";
  return wrong == 0;
}

}  // namespace

int bench_command(const Arguments& arguments) {
  const auto parsed = parse_bench_options(arguments);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  const auto& options = std::get<BenchOptions>(parsed);
  if (!fits_in_memory(options)) return exit_failure;
  if (options.launch_ranks > 0) return launch_ranks(options, arguments);
  InitOptions init_options;
  if (!options.transport.empty()) init_options.transports = {options.transport};
  Communicator communicator = init(init_options);
  return measure_all(communicator, options) ? 0 : exit_failure;
}

}  // namespace tutti::tools
