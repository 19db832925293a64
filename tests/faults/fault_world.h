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

// Ranks that run fault_rank, to which the test does something.
class FaultWorld {
 public:
  struct Options {
    std::string transport = {};  // empty: all that there are
    std::string heartbeat = "10s";
    Process::Environment more = {};
  };
  FaultWorld(int size, const std::vector<std::string>& words, const Options& options);

  int size() const { return static_cast<int>(ranks_.size()); }
  Process& rank(int number) { return ranks_[static_cast<std::size_t>(number)]; }
  // Waits until all ranks have met and are working. Anything else is a test failure.
  bool ready();
  // Returns a rank's report of its failure, or nothing if it does not report in time.
  std::optional<Failure> failure(int number);
  // Waits until a rank goes on in a world of that size. Returns the milliseconds that the agreement took.
  std::optional<double> shrunk(int number, int size);
  // "rank 2 (host h, pid 4711)" without the host.
  bool names(const std::string& message, int number);
  // The output of all ranks.
  std::string report();

 private:
  std::deque<Process> ranks_;
};

// The options of the command line: `--runs N`, `--seed S`.
std::uint64_t argument(const std::string& name, std::uint64_t otherwise);

// Returns the given percentile.
double percentile(std::vector<double> values, double percent);

}  // namespace tutti::test
