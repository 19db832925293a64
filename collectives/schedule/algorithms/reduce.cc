#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/circulant.h"
#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"

namespace tutti {
namespace {

// Sends the vectors up a binomial tree (a k-nomial tree if the radix k is larger than 2). Each
// subtree is a contiguous range of ranks for every root, so operands are always combined in rank
// order (see tree.h). Cost for p ranks and vectors of n bytes: ceil(log_k p) rounds of k-1 messages;
// each message has n bytes, which are combined.
void binomial(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const TreeNode node = range_tree(problem.rank, problem.size, problem.root, radix_of(tuning));
  Slice value = input(0, problem.count);
  Slice sum = output(0, problem.count);
  if (node.parent >= 0 && !node.children.empty()) sum = builder.scratch(problem.count);
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    builder.recv_reduce(child->rank, value, sum,
                        child->first < problem.rank ? MessageSide::left : MessageSide::right);
    value = sum;
  }
  if (node.parent >= 0) {
    builder.send(node.parent, value);
  } else {
    builder.copy(value, sum);
  }
}

double binomial_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.whole_tree(terms.bytes(), radix_of(tuning), true);
}

// This is the algorithm of Rabenseifner, "Optimization of Collective Reduction Operations" (2004):
// a circulant reduce-scatter (see circulant.h), then a gather up a binomial tree. Cost: 2 ceil(log2
// p) rounds, 2 (p-1)/p n bytes, half of which are combined.
void reduce_scatter_gather(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const TreeNode node = range_tree(problem.rank, problem.size, problem.root, 2);
  const Blocks blocks = Blocks::balanced(problem.count, problem.size);
  const Slice work = node.parent < 0 ? output(0, problem.count) : builder.scratch(problem.count);
  circulant_reduce_scatter(builder, problem, blocks, work, blocks.of(work, problem.rank));
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    builder.recv(child->rank, blocks.of(work, child->first, child->last));
  }
  if (node.parent >= 0) builder.send(node.parent, blocks.of(work, node.first, node.last));
}

double reduce_scatter_gather_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.circulant(terms.bytes(), true) + terms.halving_tree(terms.bytes());
}

// Sends partial results from rank to rank in segments, and each rank combines its own input with them. If the
// operation commutes, there is one chain, which goes through all ranks and ends at the root. Otherwise two
// chains keep rank order: one leads from the first rank up to the root, the other from the last rank down to
// it. Cost: at most p-1 hops of one segment, then n bytes at full speed (2n if there are two chains).
void chain(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const int p = problem.size;
  const int r = problem.rank;
  int from_left = -1;   // the rank whose partial result is combined on the left of this rank's operand
  int from_right = -1;  // the rank whose partial result is combined on the right
  int to = -1;
  if (problem.commutative) {
    if (shifted(r, 1, p) != problem.root) from_right = shifted(r, 1, p);
    if (r != problem.root) to = shifted(r, -1, p);
  } else {
    if (r <= problem.root && r > 0) from_left = r - 1;
    if (r >= problem.root && r < p - 1) from_right = r + 1;
    if (r != problem.root) to = r < problem.root ? r + 1 : r - 1;
  }
  const Slice own = input(0, problem.count);
  const Segments segments(problem, tuning, problem.count, 3);
  const bool inner = to >= 0 && (from_left >= 0 || from_right >= 0);
  Slots slots(builder, inner ? segments.unit() : 0, 8);
  for (std::uint64_t i = 0; i < segments.count(own); ++i) {
    Slice value = segments.at(own, i);
    const Slice sum = to >= 0 ? slots.next(value.count) : segments.at(output(0, problem.count), i);
    for (const int from : {from_left, from_right}) {
      if (from < 0) continue;
      builder.recv_reduce(from, value, sum, from == from_left ? MessageSide::left : MessageSide::right);
      value = sum;
    }
    if (to >= 0) {
      builder.send(to, value);
    } else {
      builder.copy(value, sum);
    }
  }
}

double chain_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  const bool two_chains = !problem.commutative && problem.root != 0 && problem.root != problem.size - 1;
  const double hops = two_chains ? std::max(problem.root, problem.size - 1 - problem.root) : terms.p() - 1;
  return terms.pipeline(hops, two_chains ? 2 : 1, terms.bytes(), true);
}

constexpr CollectiveKind kind = CollectiveKind::reduce;
constexpr std::array family = {
    Algorithm{20, "binomial", kind, true, radix_knob, always, binomial_cost, binomial},
    Algorithm{21, "reduce_scatter_gather", kind, false, 0, always, reduce_scatter_gather_cost,
              reduce_scatter_gather},
    Algorithm{22, "chain", kind, true, segment_knob, always, chain_cost, chain},
};

}  // namespace

std::span<const Algorithm> reduce_algorithms() { return family; }

}  // namespace tutti
