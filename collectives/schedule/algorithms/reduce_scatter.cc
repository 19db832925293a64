#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/circulant.h"
#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"

namespace tutti {
namespace {

Blocks blocks_of(const Problem& problem) {
  return problem.kind == CollectiveKind::reduce_scatter_v ? Blocks::packed(problem.input_counts)
                                                          : Blocks::uniform(problem.count, problem.size);
}

double total_bytes(const Problem& problem) {
  return static_cast<double>(blocks_of(problem).total()) * problem.element_size;
}

// This is the recursive halving of Iannello, "Efficient algorithms for the reduce-scatter operation in LogGP"
// (1997), as in Thakur, Rabenseifner, Gropp (2005). It needs the number p of ranks to be a power of two. The
// most distant partners exchange first, so the blocks of every round are contiguous. Cost for blocks of n
// bytes: log2 p rounds, (p-1) n bytes, all of which are combined.
void recursive_halving(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const int p = problem.size;
  const Blocks blocks = blocks_of(problem);
  const Slice result = output(0, problem.count);
  if (p == 1) builder.copy(blocks.in_input(0), result);
  // After the first round, this rank keeps half of the blocks. `work` has the partial sums of that half; its
  // offsets count from the first block of that half.
  const int kept_first = problem.rank & (p / 2);
  const Slice work = builder.scratch(p > 2 ? blocks.total() / 2 : 0);
  for (int half = p / 2; half >= 1; half /= 2) {
    const int partner = problem.rank ^ half;
    const int mine = problem.rank & ~(half - 1);
    const int theirs = mine ^ half;
    const auto source = [&](int first) {
      if (half == p / 2) return blocks.of(input(0, blocks.total()), first, first + half);
      return blocks.of(work, first - kept_first, first - kept_first + half);
    };
    const Slice target = half == 1 ? result : blocks.of(work, mine - kept_first, mine - kept_first + half);
    builder.send(partner, source(theirs));
    builder.recv_reduce(partner, source(mine), target,
                        partner < problem.rank ? MessageSide::left : MessageSide::right);
  }
}

double recursive_halving_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  double seconds = 0;
  for (int half = problem.size / 2; half >= 1; half /= 2) {
    seconds += terms.reducing_burst(1, half * terms.bytes(), terms.exchange(half));
  }
  return seconds;
}

// This is the circulant reduce-scatter (see circulant.h). Cost: ceil(log2 p) rounds of up to two messages,
// (p-1) n bytes, all of which are combined.
void circulant(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Blocks blocks = blocks_of(problem);
  const Slice work = builder.scratch(problem.size > 2 ? blocks.total() : 0);
  circulant_reduce_scatter(builder, problem, blocks, work, output(0, blocks.count(problem.rank)));
}

double circulant_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.circulant(total_bytes(problem), true);
}

// Sends every block directly to its owner. The owner starts with its own operand. Then it combines
// the operand of the next higher rank on the right, then the operand of the next lower rank on the
// left, and so on outwards. So the operands stay in rank order, and no sender has to wait for
// another rank. Cost: p-1 messages that overlap, (p-1) n bytes, all of which are combined.
void pairwise(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const int p = problem.size;
  const int r = problem.rank;
  const Blocks blocks = blocks_of(problem);
  const Slice sum = output(0, blocks.count(r));
  Slice value = blocks.in_input(r);
  builder.limit_in_flight(tuning.window);
  for (int distance = 1; distance < p; ++distance) {
    if (r - distance >= 0) builder.send(r - distance, blocks.in_input(r - distance));
    if (r + distance < p) builder.send(r + distance, blocks.in_input(r + distance));
    if (r + distance < p) {
      builder.recv_reduce(r + distance, value, sum, MessageSide::right);
      value = sum;
    }
    if (r - distance >= 0) {
      builder.recv_reduce(r - distance, value, sum, MessageSide::left);
      value = sum;
    }
  }
  builder.copy(value, sum);
}

double pairwise_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.reducing_burst(terms.p() - 1, total_bytes(problem) / terms.p(), terms.shift(problem.size));
}

// Each block's partial sum goes around the ring once, in segments, and ends at the block's owner. Cost: p-1
// steps between neighbours, (p-1) n bytes, all of which are combined.
void ring(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const int p = problem.size;
  const int r = problem.rank;
  const Blocks blocks = blocks_of(problem);
  const Segments segments(problem, tuning, blocks.largest(), 4 * static_cast<std::uint64_t>(p));
  Slots slots(builder, p > 2 ? blocks.largest() : 0, 2);
  if (p == 1) builder.copy(blocks.in_input(0), output(0, blocks.count(0)));
  Slice sent = blocks.in_input(shifted(r, -1, p));
  for (int k = 0; k < p - 1; ++k) {
    const Slice local = blocks.in_input(shifted(shifted(r, -2, p), -k, p));
    const Slice sum = k == p - 2 ? output(0, local.count) : slots.next(local.count);
    for (std::uint64_t i = 0; i < std::max(segments.count(sent), segments.count(local)); ++i) {
      if (i < segments.count(sent)) builder.send(shifted(r, 1, p), segments.at(sent, i));
      if (i >= segments.count(local)) continue;
      builder.recv_reduce(shifted(r, -1, p), segments.at(local, i), segments.at(sum, i), MessageSide::left);
    }
    sent = sum;
  }
}

double ring_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  const double largest = static_cast<double>(blocks_of(problem).largest()) * problem.element_size;
  const double mean = total_bytes(problem) / terms.p();
  return terms.ring(terms.p() - 1, mean, true) + terms.pipeline(1, 1, largest, true) -
         terms.pipeline(1, 1, mean, true);
}

constexpr CollectiveKind kind = CollectiveKind::reduce_scatter;
constexpr CollectiveKind kind_v = CollectiveKind::reduce_scatter_v;
constexpr std::array family = {
    Algorithm{50, "recursive_halving", kind, false, 0, power_of_two_ranks, recursive_halving_cost,
              recursive_halving},
    Algorithm{51, "circulant", kind, false, 0, always, circulant_cost, circulant},
    Algorithm{52, "pairwise", kind, true, window_knob, always, pairwise_cost, pairwise},
    Algorithm{53, "ring", kind, false, segment_knob, always, ring_cost, ring},
    Algorithm{60, "circulant", kind_v, false, 0, always, circulant_cost, circulant},
    Algorithm{61, "pairwise", kind_v, true, window_knob, always, pairwise_cost, pairwise},
    Algorithm{62, "ring", kind_v, false, segment_knob, always, ring_cost, ring},
};

}  // namespace

std::span<const Algorithm> reduce_scatter_algorithms() { return family; }

}  // namespace tutti
