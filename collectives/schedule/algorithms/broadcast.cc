#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/circulant.h"
#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"

namespace tutti {
namespace {

// Sends the vector down a binomial tree, or for radix k > 2 a k-nomial one (see tree.h). Cost for p ranks and
// a vector of n bytes: ceil(log_k p) rounds of k-1 messages of n bytes.
void binomial(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const TreeNode node = range_tree(problem.rank, problem.size, problem.root, radix_of(tuning));
  const Slice all_output = output(0, problem.count);
  const Slice source = node.parent < 0 ? input(0, problem.count) : all_output;
  if (node.parent >= 0) builder.recv(node.parent, all_output);
  for (const auto& child : node.children) builder.send(child.rank, source);
  if (node.parent < 0) builder.copy(source, all_output);
}

double binomial_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.whole_tree(terms.bytes(), radix_of(tuning), false);
}

// This is the algorithm of van de Geijn, in Barnett et al., "Interprocessor collective
// communication library (InterCom)" (1994). It scatters the vector down a binomial tree, and then
// runs a circulant all-gather (see circulant.h). Cost: 2 ceil(log2 p) rounds, 2 (p-1)/p n bytes.
void scatter_all_gather(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const TreeNode node = range_tree(problem.rank, problem.size, problem.root, 2);
  const Blocks blocks = Blocks::balanced(problem.count, problem.size);
  const Slice all_output = output(0, problem.count);
  const Slice source = node.parent < 0 ? input(0, problem.count) : all_output;
  if (node.parent >= 0) builder.recv(node.parent, blocks.of(all_output, node.first, node.last));
  for (const auto& child : node.children)
    builder.send(child.rank, blocks.of(source, child.first, child.last));
  // The root copies only its own block. It receives the rest of its output from the others, since the
  // all-gather sends it anyway.
  if (node.parent < 0) builder.copy(blocks.of(source, problem.rank), blocks.of(all_output, problem.rank));
  circulant_all_gather(builder, problem, blocks, all_output);
}

double scatter_all_gather_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.halving_tree(terms.bytes()) + terms.circulant(terms.bytes(), false);
}

// Sends the vector from rank to rank in segments. Cost: p-1 hops of one segment, then n bytes at full speed.
void chain(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const int p = problem.size;
  const int next = shifted(problem.rank, 1, p);
  const bool is_root = problem.rank == problem.root;
  const Slice all_output = output(0, problem.count);
  const Slice source = is_root ? input(0, problem.count) : all_output;
  const Segments segments(problem, tuning, problem.count, 2);
  for (std::uint64_t i = 0; i < segments.count(source); ++i) {
    const Slice segment = segments.at(source, i);
    if (!is_root) builder.recv(shifted(problem.rank, -1, p), segment);
    if (next != problem.root) builder.send(next, segment);
  }
  if (is_root) builder.copy(source, all_output);
}

double chain_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.pipeline(terms.p() - 1, 1, terms.bytes(), false);
}

constexpr CollectiveKind kind = CollectiveKind::broadcast;
constexpr std::array family = {
    Algorithm{10, "binomial", kind, true, radix_knob, always, binomial_cost, binomial},
    Algorithm{11, "scatter_all_gather", kind, true, 0, always, scatter_all_gather_cost, scatter_all_gather},
    Algorithm{12, "chain", kind, true, segment_knob, always, chain_cost, chain},
};

}  // namespace

std::span<const Algorithm> broadcast_algorithms() { return family; }

}  // namespace tutti
