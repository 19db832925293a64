#include "tools/predict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <ostream>
#include <sstream>
#include <vector>

#include "collectives/schedule/simulator.h"
#include "tools/collective_size.h"
#include "tools/lower_bound.h"
#include "tools/machine.h"

namespace tutti::tools {
namespace {

// The simulation repeats each call, as `tutti bench` does in a batch. It makes as many calls as fit
// into the time of a batch, but at least this many. So the first and the last call hardly matter.
constexpr int fewest_repetitions = 8;
constexpr int most_repetitions = 200;
constexpr double batch_seconds = 2e-3;

struct SizeClass {
  std::uint64_t most;
  const char* name;
};
constexpr std::array size_classes = {SizeClass{1024, "up to 1 KiB"}, SizeClass{64 << 10, "up to 64 KiB"},
                                     SizeClass{1 << 20, "up to 1 MiB"}, SizeClass{UINT64_MAX, "above 1 MiB"}};

std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> columns;
  std::istringstream text(line);
  for (std::string column; std::getline(text, column, ',');) columns.push_back(column);
  return columns;
}

Problem problem_of(CollectiveKind kind, std::uint64_t bytes, int ranks) {
  Problem problem;
  problem.kind = kind;
  problem.size = ranks;
  problem.element_size = static_cast<std::uint32_t>(size_of(DataType::float32));
  problem.count = count_for(kind, bytes, ranks, DataType::float32);
  return problem;
}

// Returns the mean time of one call in a long series, in seconds.
double simulated(const Choice& choice, const Problem& problem, const CostModel& model) {
  const auto repeat = [&](int repetitions) {
    return simulate(*choice.algorithm, problem, choice.tuning, model, repetitions).seconds;
  };
  const double first = repeat(fewest_repetitions);
  const double more = std::min(batch_seconds / std::max(first, 1e-9), static_cast<double>(most_repetitions));
  return more > fewest_repetitions ? repeat(static_cast<int>(more)) : first;
}

// `Errors` collects the ratios of predicted to measured times, for each number of ranks and each class of
// sizes.
class Errors {
 public:
  void add(int ranks, std::uint64_t bytes, double ratio) {
    const auto* size = std::find_if(size_classes.begin(), size_classes.end(),
                                    [&](const SizeClass& each) { return bytes <= each.most; });
    logs_[{ranks, size - size_classes.begin()}].push_back(std::log(ratio));
  }
  void print(std::ostream& out) const {
    for (const auto& [key, logs] : logs_) {
      double mean = 0, spread = 0, worst = 0;
      for (const double log : logs) {
        mean += log / static_cast<double>(logs.size());
        spread += std::abs(log) / static_cast<double>(logs.size());
        worst = std::max(worst, std::abs(log));
      }
      out << "# " << key.first << " ranks, " << size_classes[static_cast<std::size_t>(key.second)].name
          << ": " << logs.size() << " cells, predicted / measured " << std::exp(mean)
          << " on average, off by a factor of " << std::exp(spread) << " on average, " << std::exp(worst)
          << " at worst\n";
    }
  }

 private:
  std::map<std::pair<int, std::ptrdiff_t>, std::vector<double>> logs_;
};

}  // namespace

std::string validate(const std::string& file, const Selector& selector, const Topology* topology,
                     std::ostream& out) {
  std::ifstream table(file);
  std::string line;
  if (!std::getline(table, line)) return "cannot read " + file;
  if (!line.starts_with("peer,collective,bytes,ranks,lat_us_median"))
    return file + " is not from `tutti bench`";
  Errors errors;
  out << "collective,bytes,ranks,measured_us,predicted_us,ratio,algorithm\n";
  while (std::getline(table, line)) {
    const std::vector<std::string> columns = columns_of(line);
    if (columns.size() < 5) return "a line of " + file + " is cut short: " + line;
    const auto kind = parse_collective_kind(columns[1]);
    if (!kind) continue;  // a point-to-point pattern, for which there is no prediction
    const std::uint64_t bytes = std::stoull(columns[2]);
    const int ranks = std::stoi(columns[3]);
    const double measured = std::stod(columns[4]);
    if (topology != nullptr && topology->size() != ranks) {
      return file + " has times of " + std::to_string(ranks) + " ranks; this job has " +
             std::to_string(topology->size());
    }
    Problem problem = problem_of(*kind, bytes, ranks);
    problem.topology = topology;
    const Choice choice = selector.choose(problem).take();
    const double predicted = 1e6 * simulated(choice, problem, selector.model());
    if (measured <= 0 || predicted <= 0) continue;
    out << columns[1] << ',' << bytes << ',' << ranks << ',' << measured << ',' << predicted << ','
        << predicted / measured << ',' << choice.algorithm->name << '\n';
    errors.add(ranks, bytes, predicted / measured);
  }
  errors.print(out);
  return {};
}

namespace {

constexpr std::array scaling_kinds = {CollectiveKind::all_reduce,     CollectiveKind::broadcast,
                                      CollectiveKind::reduce,         CollectiveKind::all_gather,
                                      CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
                                      CollectiveKind::barrier};
constexpr std::array<std::uint64_t, 3> scaling_bytes = {8, 64 << 10, 64 << 20};
constexpr std::array scaling_ranks = {8,    16,   32,   64,    128,   256,   512,    1024,
                                      2048, 4096, 8192, 16384, 32768, 65536, 100'000};
constexpr int most_events_ranks = 4096;
// An algorithm is simulated only if all ranks together have at most this many steps. Otherwise its
// closed form gives the cost.
constexpr std::uint64_t most_steps = 400'000;

// Estimates the number of steps of all ranks together. It multiplies the steps of one rank, in the
// middle of the world, by the number of ranks.
std::uint64_t steps_of(const Choice& choice, Problem problem) {
  problem.rank = problem.size / 2;
  return build_schedule(*choice.algorithm, problem, choice.tuning).steps.size() *
         static_cast<std::uint64_t>(problem.size);
}

}  // namespace

void print_scaling(const Selector& selector, int ranks_per_host, std::ostream& out) {
  out << "collective,algorithm,bytes,ranks,seconds,bound,how\n";
  for (const CollectiveKind kind : scaling_kinds) {
    for (const std::uint64_t bytes : scaling_bytes) {
      if (kind == CollectiveKind::barrier && bytes != scaling_bytes.front()) continue;
      for (const int ranks : scaling_ranks) {
        Problem problem = problem_of(kind, bytes, ranks);
        const auto topology = topology_of(ranks, std::max(1, ranks / ranks_per_host));
        problem.topology = topology.get();
        const double bound = lower_bound(problem, selector.model()).seconds();
        for (const Choice& choice : selector.rank(problem)) {
          const bool events = ranks <= most_events_ranks && choice.seconds < 1e3 &&
                              static_cast<std::uint64_t>(ranks) * 6 <= most_steps &&
                              steps_of(choice, problem) <= most_steps;
          const double seconds =
              events ? simulate(*choice.algorithm, problem, choice.tuning, selector.model()).seconds
                     : choice.seconds;
          out << to_string(kind) << ',' << choice.algorithm->name << ',' << bytes << ',' << ranks << ','
              << seconds << ',' << bound << ',' << (events ? "events" : "closed form") << '\n';
        }
      }
    }
  }
}

}  // namespace tutti::tools
