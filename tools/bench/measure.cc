#include "tools/bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

namespace tutti::tools {
namespace {

constexpr double warmup_us = 10'000;
constexpr double batch_us = 2'000;
constexpr long most_operations = 1000;
constexpr long fewest_batches = 5;
constexpr long most_batches = 1000;

// `Measuring` runs and checks one operation on all ranks together.
class Measuring {
 public:
  Measuring(Communicator& communicator, BenchOperation& operation)
      : communicator_(communicator), operation_(operation) {}

  // Returns the number of wrong elements over all ranks after one run on fresh data.
  std::uint64_t verify() {
    operation_.fill();
    communicator_.barrier().wait();
    operation_.run();
    std::uint64_t wrong[] = {operation_.count_wrong()};
    communicator_.all_reduce(Buffer(wrong), ReduceOp::sum).wait();
    return wrong[0];
  }

  // Runs the operation `operations` times. Returns the mean time of one run on this rank, in microseconds.
  double batch(long operations) {
    communicator_.barrier().wait();
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < operations; ++i) operation_.run();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    return time.count() / static_cast<double>(operations);
  }

  // Runs a batch as `batch` does, but returns the mean time of the slowest rank.
  double agreed_batch(long operations) {
    double time[] = {batch(operations)};
    slowest(time);
    return std::max(time[0], 1e-3);
  }

  void slowest(std::span<double> times) { communicator_.all_reduce(Buffer(times), ReduceOp::max).wait(); }

 private:
  Communicator& communicator_;
  BenchOperation& operation_;
};

long clamped(double value, long least, long most) {
  return std::clamp(std::lround(std::min(value, 1e9)), least, most);
}

}  // namespace

Measurement measure(Communicator& communicator, const MeasuredInfo& info, BenchOperation& operation,
                    const BenchOptions& options) {
  Measuring measuring(communicator, operation);
  Measurement result;
  result.wrong = measuring.verify();

  double estimate = measuring.agreed_batch(1);
  estimate = measuring.agreed_batch(options.warmup > 0 ? options.warmup
                                                       : clamped(warmup_us / estimate, 1, most_operations));
  const long operations =
      options.batch > 0 ? options.batch : clamped(batch_us / estimate, 1, most_operations);
  const double budget_us = static_cast<double>(options.budget.count()) * 1000;
  const long batches =
      options.iterations > 0
          ? options.iterations
          : clamped(budget_us / (estimate * static_cast<double>(operations)), fewest_batches, most_batches);
  std::vector<double> times(static_cast<std::size_t>(batches));
  for (double& time : times) time = measuring.batch(operations);
  measuring.slowest(times);
  result.wrong += measuring.verify();

  if (info.what == Measured::pingpong) {
    for (double& time : times) time /= 2;
  }
  std::sort(times.begin(), times.end());
  result.min_us = times.front();
  result.median_us = times[times.size() / 2];
  result.p99_us = times[static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(times.size()))) - 1];
  result.batches = static_cast<std::uint64_t>(batches);
  result.operations = static_cast<std::uint64_t>(operations);
  return result;
}

}  // namespace tutti::tools
