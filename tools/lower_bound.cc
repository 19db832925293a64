#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <tutti/tools/collective_size.h>
#include <tutti/tools/lower_bound.h>

namespace tutti::tools {
namespace {

// In steps of the overhead; alpha is rounded down to whole ones, which keeps this a bound.
double latency_bound(int ranks, const CostModel& model) {
  const double step = model.near.gap;
  if (step <= 0) return model.near.alpha;
  const auto delay = static_cast<std::size_t>(std::clamp(std::floor(model.near.alpha / step), 1.0, 1e6));
  std::vector<double> reached(delay, 1);  // N(0), N(1), ...
  while (reached.back() < ranks) reached.push_back(reached.back() + reached[reached.size() - delay]);
  return static_cast<double>(reached.size() - 1) * std::min(step, model.near.alpha);
}

}  // namespace

double LowerBound::seconds() const { return std::max({latency, bandwidth, compute}); }

LowerBound lower_bound(const Problem& problem, const CostModel& model) {
  if (problem.size == 1) return {};
  // Without data there is nothing to wait for, except at a barrier.
  if (problem.count == 0 && problem.kind != CollectiveKind::barrier) return {};
  const double ranks = problem.size;
  const double others = (ranks - 1) / ranks;
  double vector = static_cast<double>(problem.count * problem.element_size);
  if (has_blocks(problem.kind)) vector *= ranks;

  double through_port = vector;  // broadcast, reduce, scan: everything passes a port once
  if (has_blocks(problem.kind)) through_port = vector * others;
  if (problem.kind == CollectiveKind::all_reduce) through_port = 2 * vector * others;
  return {.latency = latency_bound(problem.size, model),
          .bandwidth = through_port * model.near.beta,
          .compute = is_reduction(problem.kind) ? vector * others * model.gamma : 0};
}

}  // namespace tutti::tools
