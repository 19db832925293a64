#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace tutti::test {

// A `Failure` is a rank's report of a failure.
struct Failure {
  std::int64_t when = 0;  // monotonic nanoseconds
  std::string code;
  std::string message;
};

std::int64_t monotonic_now();

// `FaultWorld` runs ranks that a test may kill or stop.
class FaultWorld {
 public:
  struct Options {
    std::string transport = {};  // empty if every transport may be used
    std::string heartbeat = "10s";
    std::string program = "fault_rank";
    Process::Environment more = {};
    Process::Environment only_rank_0 = {};
  };
  FaultWorld(int size, const std::vector<std::string>& words, const Options& options);

  int size() const { return static_cast<int>(ranks_.size()); }
  Process& rank(int number) { return ranks_[static_cast<std::size_t>(number)]; }
  // Returns true as soon as all ranks have met and are working. If they take too long, fails the
  // test and returns false.
  bool ready();
  // Returns a rank's report of its failure, or nothing if the rank does not report in time.
  std::optional<Failure> failure(int number);
  // Waits until a rank continues in a world of `size` ranks. Returns how many milliseconds its `shrink` took,
  // or nothing if the rank does not continue in time.
  std::optional<double> shrunk(int number, int size);
  // Returns whether the message names a rank, as in "rank 2 (host h, pid 4711)". The host is not checked.
  bool names(const std::string& message, int number);
  // Returns the output of all ranks.
  std::string report();

 private:
  std::deque<Process> ranks_;
};

// Returns the value of a command-line option (`--runs N`, `--seed S`), or `otherwise` if the option is
// missing.
std::uint64_t argument(const std::string& name, std::uint64_t otherwise);

double percentile(std::vector<double> values, double percent);

}  // namespace tutti::test
