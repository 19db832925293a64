#include "tools/lower_bound.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "collectives/schedule/topology.h"
#include "tools/collective_size.h"

namespace tutti::tools {
namespace {

// Returns the least time in which one rank's data can reach `ranks` ranks. Time is counted in
// steps of `link.gap`, and the latency alpha is rounded down to whole steps. If alpha is shorter than a gap,
// the delay is one step, and a step lasts only alpha. So the result is a lower bound in both cases.
double latency_bound(int ranks, const LinkCost& link) {
  const double step = link.gap;
  if (step <= 0) return link.alpha;
  const auto delay = static_cast<std::size_t>(std::clamp(std::floor(link.alpha / step), 1.0, 1e6));
  std::vector<double> reached(delay, 1);  // N(0), N(1), ... (see `LowerBound`)
  while (reached.back() < ranks) reached.push_back(reached.back() + reached[reached.size() - delay]);
  return static_cast<double>(reached.size() - 1) * std::min(step, link.alpha);
}

// Divides the world into `parts` equal parts, and returns how many bytes must pass the network port
// of each part. Every rank has a vector of `vector` bytes.
double through_port(CollectiveKind kind, double vector, double parts) {
  const double others = (parts - 1) / parts;
  if (kind == CollectiveKind::all_reduce) return 2 * vector * others;
  // In a broadcast, reduce or scan the whole vector passes once.
  return has_blocks(kind) ? vector * others : vector;
}

// Returns the number of bytes that must pass a host's network port in one direction: from its ranks
// to other hosts, or from other hosts to its ranks.
double through_host(CollectiveKind kind, double vector, const Topology& topology) {
  const double most = kind == CollectiveKind::all_to_all ? topology.most() : 1;
  return most * through_port(kind, vector, topology.hosts());
}

// Returns the least number of bytes that all ranks together have to combine or write. For example, an
// all_reduce of n ranks takes n - 1 combinations and n - 1 copies of the vector. The last combination can
// write into the result of one rank, and all other ranks need a copy.
double through_cores(CollectiveKind kind, double vector, double ranks) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (ranks - 1) * vector;
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
    case CollectiveKind::reduce_scatter:
      return (ranks - 1) * vector;
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return (ranks - 1) / ranks * vector;
    case CollectiveKind::barrier:
      return 0;
    default:
      return (ranks - 1) * vector;
  }
}

LowerBound by_shared_memory(const Problem& problem, const CostModel& model, double vector) {
  const double ranks = problem.size;
  const double cores = model.cores == 0 ? ranks : std::min<double>(ranks, model.cores);
  return {.latency = model.signal,
          .compute = through_cores(problem.kind, vector, ranks) / cores * model.gamma,
          .shared = true};
}

}  // namespace

double LowerBound::seconds() const { return std::max({latency, bandwidth, compute}); }

LowerBound lower_bound(const Problem& problem, const CostModel& model) {
  if (problem.size == 1) return {};
  // A collective without data makes no rank wait for others. A barrier is the exception.
  if (problem.count == 0 && problem.kind != CollectiveKind::barrier) return {};
  const double ranks = problem.size;
  const double others = (ranks - 1) / ranks;
  double vector = static_cast<double>(problem.count * problem.element_size);
  if (has_blocks(problem.kind)) vector *= ranks;

  double latency = latency_bound(problem.size, model.near);
  double bandwidth = through_port(problem.kind, vector, ranks) * model.near.beta;
  // The bounds between hosts hold only if all hosts have the same number of ranks.
  if (problem.topology != nullptr && problem.topology->most() == problem.topology->fewest()) {
    latency = std::max(latency, latency_bound(problem.topology->hosts(), model.far));
    bandwidth = std::max(bandwidth, through_host(problem.kind, vector, *problem.topology) * model.far.beta);
  }
  const LowerBound by_messages = {.latency = latency,
                                  .bandwidth = bandwidth,
                                  .compute = is_reduction(problem.kind) ? vector * others * model.gamma : 0};
  if (problem.window_bytes == 0) return by_messages;
  const LowerBound shared = by_shared_memory(problem, model, vector);
  return shared.seconds() < by_messages.seconds() ? shared : by_messages;
}

}  // namespace tutti::tools
