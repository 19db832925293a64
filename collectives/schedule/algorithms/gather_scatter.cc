#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"

// Gather and scatter move the same data in opposite directions, so they share their code.
namespace tutti {
namespace {

enum class Flow { to_root, from_root };

template <Flow flow>
constexpr bool gathers = flow == Flow::to_root;

// Returns the first `count` elements of the buffer that holds this rank's block.
template <Flow flow>
Slice own_side(std::uint64_t count) {
  return gathers<flow> ? input(0, count) : output(0, count);
}

// Emits the one message between this rank and `peer`, as a send or as a receive. If `towards_root`
// is true, the peer is this rank's parent (or the root itself); otherwise it is a child.
template <Flow flow>
void message(ScheduleBuilder& builder, int peer, const Slice& slice, bool towards_root) {
  if (gathers<flow> == towards_root) {
    builder.send(peer, slice);
  } else {
    builder.recv(peer, slice);
  }
}

// Moves blocks along a binomial tree (a k-nomial tree if the radix k is larger than 2). Each
// subtree is a contiguous range of ranks for every root, so no data needs to be rotated (see
// tree.h). Cost for p ranks and blocks of n bytes: ceil(log_k p) rounds of k-1 messages; (p-1) n
// bytes pass through the root.
template <Flow flow>
void binomial(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const TreeNode node = range_tree(problem.rank, problem.size, problem.root, radix_of(tuning));
  const std::uint64_t n = problem.count;
  const Slice own = own_side<flow>(n);
  if (node.children.empty() && node.parent >= 0) return message<flow>(builder, node.parent, own, true);
  const std::uint64_t total = static_cast<std::uint64_t>(node.last - node.first) * n;
  const Slice at_root = gathers<flow> ? output(0, total) : input(0, total);
  const Slice held = node.parent < 0 ? at_root : builder.scratch(total);
  const auto place = [&](int first, int last) {
    return sub_slice(held, static_cast<std::uint64_t>(first - node.first) * n,
                     static_cast<std::uint64_t>(last - first) * n);
  };
  const Slice mine = place(problem.rank, problem.rank + 1);
  if constexpr (gathers<flow>) {
    builder.copy(own, mine);
    for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
      builder.recv(child->rank, place(child->first, child->last));
    }
    if (node.parent >= 0) builder.send(node.parent, held);
  } else {
    if (node.parent >= 0) builder.recv(node.parent, held);
    for (const auto& child : node.children) builder.send(child.rank, place(child.first, child.last));
    builder.copy(mine, own);
  }
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

// Each rank except the root exchanges one message with the root, even if its block is empty. The _v kinds
// cannot use a tree, since only the root knows all counts. Cost: p-1 messages through the root's port.
template <Flow flow>
void linear(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  if (problem.rank != problem.root) {
    const std::uint64_t count = gathers<flow> ? input_count(problem) : output_count(problem);
    return message<flow>(builder, problem.root, own_side<flow>(count), true);
  }
  const bool counted = problem.kind == CollectiveKind::gather_v || problem.kind == CollectiveKind::scatter_v;
  const auto counts = gathers<flow> ? problem.output_counts : problem.input_counts;
  const Blocks blocks = counted ? Blocks::packed(counts) : Blocks::uniform(problem.count, problem.size);
  const auto block = [&](int rank) { return gathers<flow> ? blocks.in_output(rank) : blocks.in_input(rank); };
  for (int rank = 0; rank < problem.size; ++rank) {
    if (rank != problem.root) message<flow>(builder, rank, block(rank), false);
  }
  const Slice own = own_side<flow>(blocks.count(problem.rank));
  const Slice mine = block(problem.rank);
  gathers<flow> ? builder.copy(own, mine) : builder.copy(mine, own);
}

double linear_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.burst(terms.p() - 1, terms.bytes(), terms.rooted());
}

constexpr auto binomial_up = binomial<Flow::to_root>;
constexpr auto binomial_down = binomial<Flow::from_root>;
constexpr auto linear_up = linear<Flow::to_root>;
constexpr auto linear_down = linear<Flow::from_root>;

constexpr std::array gathering = {
    Algorithm{90, "binomial", CollectiveKind::gather, true, radix_knob, always, binomial_cost, binomial_up},
    Algorithm{91, "linear", CollectiveKind::gather, true, 0, always, linear_cost, linear_up},
    Algorithm{100, "linear", CollectiveKind::gather_v, true, 0, always, linear_cost, linear_up},
};

constexpr std::array scattering = {
    Algorithm{110, "binomial", CollectiveKind::scatter, true, radix_knob, always, binomial_cost,
              binomial_down},
    Algorithm{111, "linear", CollectiveKind::scatter, true, 0, always, linear_cost, linear_down},
    Algorithm{120, "linear", CollectiveKind::scatter_v, true, 0, always, linear_cost, linear_down},
};

}  // namespace

std::span<const Algorithm> gather_algorithms() { return gathering; }

std::span<const Algorithm> scatter_algorithms() { return scattering; }

}  // namespace tutti
