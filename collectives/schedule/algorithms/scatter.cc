#include <array>

#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"

namespace tutti {
namespace {

// Down a binomial tree, for radix k > 2 a k-nomial one, whose subtrees are contiguous for every root: nothing
// is ever rotated (see tree.h). Cost: ceil(log_k p) rounds of k-1 messages, (p-1) n bytes at the root.
void binomial(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const TreeNode node = range_tree(problem.rank, problem.size, problem.root, radix_of(tuning));
  const std::uint64_t n = problem.count;
  const Slice own = output(0, n);
  if (node.children.empty() && node.parent >= 0) return builder.recv(node.parent, own);
  const std::uint64_t total = static_cast<std::uint64_t>(node.last - node.first) * n;
  const Slice held = node.parent < 0 ? input(0, total) : builder.scratch(total);
  const auto place = [&](int first, int last) {
    return sub_slice(held, static_cast<std::uint64_t>(first - node.first) * n,
                     static_cast<std::uint64_t>(last - first) * n);
  };
  if (node.parent >= 0) builder.recv(node.parent, held);
  for (const auto& child : node.children) builder.send(child.rank, place(child.first, child.last));
  builder.copy(place(problem.rank, problem.rank + 1), own);
}

double binomial_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  const int k = radix_of(tuning);
  double seconds = 0;
  for (int ranks = problem.size; ranks > 1; ranks = (ranks + k - 1) / k) {
    const int part = (ranks + k - 1) / k;
    const int messages = (ranks + part - 1) / part - 1;
    const double blocks = static_cast<double>(ranks - part) / messages;
    seconds += terms.burst(messages, blocks * terms.bytes(), terms.tree(ranks, k));
  }
  return seconds;
}

// The root straight to everybody, also to those who get nothing: only the root knows all counts.
// Cost: p-1 messages out of one port.
void linear(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const bool counted = problem.kind == CollectiveKind::scatter_v;
  if (problem.rank != problem.root) return builder.recv(problem.root, output(0, output_count(problem)));
  const Blocks blocks =
      counted ? Blocks::packed(problem.input_counts) : Blocks::uniform(problem.count, problem.size);
  for (int rank = 0; rank < problem.size; ++rank) {
    if (rank != problem.root) builder.send(rank, blocks.in_input(rank));
  }
  builder.copy(blocks.in_input(problem.rank), output(0, blocks.count(problem.rank)));
}

double linear_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.burst(terms.p() - 1, terms.bytes(), terms.rooted());
}

constexpr std::array family = {
    Algorithm{110, "binomial", CollectiveKind::scatter, true, radix_knob, always, binomial_cost, binomial},
    Algorithm{111, "linear", CollectiveKind::scatter, true, 0, always, linear_cost, linear},
    Algorithm{120, "linear", CollectiveKind::scatter_v, true, 0, always, linear_cost, linear},
};

}  // namespace

std::span<const Algorithm> scatter_algorithms() { return family; }

}  // namespace tutti
