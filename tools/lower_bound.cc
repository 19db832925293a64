#include <algorithm>
#include <bit>

#include <tutti/tools/collective_size.h>
#include <tutti/tools/lower_bound.h>

namespace tutti::tools {

double LowerBound::seconds() const { return std::max({latency, bandwidth, compute}); }

LowerBound lower_bound(const Problem& problem, const CostModel& model) {
  if (problem.size == 1) return {};
  const double ranks = problem.size;
  const double others = (ranks - 1) / ranks;
  double vector = static_cast<double>(problem.count * problem.element_size);
  if (has_blocks(problem.kind)) vector *= ranks;

  double through_port = vector;  // broadcast, reduce, scan: everything passes a port once
  if (has_blocks(problem.kind)) through_port = vector * others;
  if (problem.kind == CollectiveKind::all_reduce) through_port = 2 * vector * others;
  const int rounds = std::bit_width(static_cast<unsigned>(problem.size - 1));
  return {.latency = rounds * model.alpha,
          .bandwidth = through_port * model.beta,
          .compute = is_reduction(problem.kind) ? vector * others * model.gamma : 0};
}

}  // namespace tutti::tools
