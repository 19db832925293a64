#include <array>

#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"

namespace tutti {
namespace {

// Up a binomial tree, for radix k > 2 a k-nomial one, whose subtrees are contiguous for every root: nothing
// is ever rotated (see tree.h). Cost: ceil(log_k p) rounds of k-1 messages, (p-1) n bytes at the root.
void binomial(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const TreeNode node = range_tree(problem.rank, problem.size, problem.root, radix_of(tuning));
  const std::uint64_t n = problem.count;
  const Slice own = input(0, n);
  if (node.children.empty() && node.parent >= 0) return builder.send(node.parent, own);
  const std::uint64_t total = static_cast<std::uint64_t>(node.last - node.first) * n;
  const Slice held = node.parent < 0 ? output(0, total) : builder.scratch(total);
  const auto place = [&](int first, int last) {
    return sub_slice(held, static_cast<std::uint64_t>(first - node.first) * n,
                     static_cast<std::uint64_t>(last - first) * n);
  };
  builder.copy(own, place(problem.rank, problem.rank + 1));
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    builder.recv(child->rank, place(child->first, child->last));
  }
  if (node.parent >= 0) builder.send(node.parent, held);
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

// Everybody straight to the root, also those with nothing: only the root knows all counts.
// Cost: p-1 messages into one port.
void linear(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const bool counted = problem.kind == CollectiveKind::gather_v;
  if (problem.rank != problem.root) return builder.send(problem.root, input(0, input_count(problem)));
  const Blocks blocks =
      counted ? Blocks::packed(problem.output_counts) : Blocks::uniform(problem.count, problem.size);
  for (int rank = 0; rank < problem.size; ++rank) {
    if (rank != problem.root) builder.recv(rank, blocks.in_output(rank));
  }
  builder.copy(input(0, blocks.count(problem.rank)), blocks.in_output(problem.rank));
}

double linear_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.burst(terms.p() - 1, terms.bytes(), terms.rooted());
}

constexpr std::array family = {
    Algorithm{90, "binomial", CollectiveKind::gather, true, radix_knob, always, binomial_cost, binomial},
    Algorithm{91, "linear", CollectiveKind::gather, true, 0, always, linear_cost, linear},
    Algorithm{100, "linear", CollectiveKind::gather_v, true, 0, always, linear_cost, linear},
};

}  // namespace

std::span<const Algorithm> gather_algorithms() { return family; }

}  // namespace tutti
