#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"

namespace tutti {
namespace {

// Finds the indices below p whose base-k digit at `place` (a power of k) is `digit`. They form runs of
// consecutive indices. Calls `function` with the first index and the length of each run.
template <class Function>
void for_digit_runs(int p, int k, int place, int digit, Function function) {
  for (long first = static_cast<long>(digit) * place; first < p; first += static_cast<long>(k) * place) {
    function(static_cast<int>(first), static_cast<int>(std::min<long>(place, p - first)));
  }
}

// This is the algorithm of Bruck, Ho, Kipnis, Upfal, Weathersby (1997). Each block has to travel some number
// of ranks to its destination. It takes one hop for each nonzero base-k digit of that number. In each round,
// all blocks with the same digit are sent in one message. Cost: ceil(log_k p) rounds of k-1 messages of about
// n p/k bytes, which are packed and unpacked.
void bruck(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const int p = problem.size;
  const int r = problem.rank;
  const int k = radix_of(tuning);
  const Blocks blocks = Blocks::uniform(problem.count, p);
  const Slice all_input = input(0, blocks.total());
  const Slice all_output = output(0, blocks.total());
  if (p == 1) return builder.copy(all_input, all_output);
  const Slice held = builder.scratch(all_input.count);  // block i has to travel i ranks
  builder.copy(blocks.of(all_input, r, p), blocks.of(held, 0, p - r));
  builder.copy(blocks.of(all_input, 0, r), blocks.of(held, p - r, p));
  for (int place = 1; place < p; place *= k) {
    for (int digit = 1; digit < k && digit * place < p; ++digit) {
      int moved = 0;
      for_digit_runs(p, k, place, digit, [&](int, int count) { moved += count; });
      const Slice outgoing = builder.scratch(static_cast<std::uint64_t>(moved) * problem.count);
      const Slice incoming = builder.scratch(outgoing.count);
      int at = 0;
      for_digit_runs(p, k, place, digit, [&](int first, int count) {
        builder.copy(blocks.of(held, first, first + count), blocks.of(outgoing, at, at + count));
        at += count;
      });
      builder.send(shifted(r, digit * place, p), outgoing);
      builder.recv(shifted(r, -digit * place, p), incoming);
      at = 0;
      for_digit_runs(p, k, place, digit, [&](int first, int count) {
        builder.copy(blocks.of(incoming, at, at + count), blocks.of(held, first, first + count));
        at += count;
      });
    }
  }
  for (int i = 0; i < p; ++i) builder.copy(blocks.of(held, i), blocks.of(all_output, shifted(r, -i, p)));
}

double bruck_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  const int k = radix_of(tuning);
  double seconds = 0;
  double moved = 0;
  for (int place = 1; place < problem.size; place *= k) {
    const int messages = std::min(k - 1, (problem.size - 1) / place);
    double round = 0;
    for (int digit = 1; digit <= messages; ++digit) {
      for_digit_runs(problem.size, k, place, digit, [&](int, int count) { round += count * terms.bytes(); });
    }
    const int reach = place * (messages + 2) / 2;  // at least the mean distance
    seconds += terms.burst(messages, round / messages, terms.shift(place, reach));
    moved += round;
  }
  return seconds + terms.gamma(2 * moved + 2 * terms.p() * terms.bytes());
}

// Returns the partner of `rank` in `round`. The partner's partner is `rank`, so both meet in the same round.
int partner_of(int rank, int round, int size) {
  const bool power_of_two = (size & (size - 1)) == 0;
  return power_of_two ? rank ^ round : shifted(round, -rank, size);
}

// Sends every block directly to its destination. A rank exchanges blocks with up to `tuning.window` partners
// at a time. If `set_aside` is true (in place), the outgoing block is first copied to scratch, since the
// partner's block replaces it. Cost: p-1 messages, overlapping; (p-1) n bytes.
void exchange(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning, const Blocks& sent,
              const Blocks& received, bool set_aside) {
  const std::uint64_t window = std::max<std::uint64_t>(tuning.window, 1);
  Slots slots(builder, set_aside ? sent.largest() : 0, window);
  builder.limit_in_flight(tuning.window);
  for (int round = 0; round < problem.size; ++round) {
    const int partner = partner_of(problem.rank, round, problem.size);
    Slice outgoing = sent.in_input(partner);
    if (partner == problem.rank) {
      builder.copy(outgoing, received.in_output(partner));
      continue;
    }
    if (set_aside) {
      const Slice slot = slots.next(outgoing.count);
      builder.copy(outgoing, slot);
      outgoing = slot;
    }
    builder.send(partner, outgoing);
    builder.recv(partner, received.in_output(partner));
  }
}

void pairwise(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const Blocks blocks = Blocks::uniform(problem.count, problem.size);
  exchange(builder, problem, tuning, blocks, blocks, problem.in_place);
}

// In place, received blocks overwrite the input, so all blocks are first copied to scratch.
void pairwise_v(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const Blocks sent = Blocks::packed(problem.input_counts);
  if (problem.in_place) {
    const Slice aside = builder.scratch(sent.total());
    builder.copy(input(0, sent.total()), aside);
    builder.redirect_input(aside);
  }
  exchange(builder, problem, tuning, sent, Blocks::packed(problem.output_counts), false);
}

double pairwise_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  if (problem.size == 1) return 0;
  const Path path = terms.shift(problem.size);
  const double window = std::max<double>(tuning.window, 1);
  const double pace = std::max(path.pace(terms.bytes(), false), path.arrival(terms.bytes()) / window);
  return path.arrival(terms.bytes()) + (terms.p() - 2) * pace;
}

constexpr std::array family = {
    Algorithm{70, "bruck", CollectiveKind::all_to_all, true, radix_knob, always, bruck_cost, bruck},
    Algorithm{71, "pairwise", CollectiveKind::all_to_all, true, window_knob, always, pairwise_cost, pairwise},
    Algorithm{80, "pairwise", CollectiveKind::all_to_all_v, true, window_knob, always, pairwise_cost,
              pairwise_v},
};

}  // namespace

std::span<const Algorithm> all_to_all_algorithms() { return family; }

}  // namespace tutti
