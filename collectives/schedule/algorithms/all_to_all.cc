#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/composition.h"
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
// of ranks to its destination. The block takes one hop for each nonzero digit of that number in base k, the
// radix. In each round, all blocks with the same digit are sent in one message. Cost for p ranks and blocks
// of n bytes: ceil(log_k p) rounds of k-1 messages of about n p/k bytes, which are packed and unpacked.
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

// The leader of a host sends this many blocks at most. It copies each block that it sends or receives, and
// each copy is a step of its schedule.
constexpr int most_sent_blocks = 4096;

bool leaders_suit(const Problem& problem) {
  return several_of_both(problem) && problem.topology->most() * problem.size <= most_sent_blocks;
}

// Exchanges blocks with the leaders of all hosts. `sent` holds a row for each rank of this host: the blocks
// that it sends to all ranks. `received` gets a row for each rank of this host: the blocks that it receives.
void exchange_rows(ScheduleBuilder& builder, const Problem& problem, const Position& at, const Slice& sent,
                   const Slice& received) {
  const std::uint64_t n = problem.count;
  const auto block = [&](const Slice& rows, int row, int column) {
    return sub_slice(rows, (static_cast<std::uint64_t>(row) * problem.size + column) * n, n);
  };
  const auto scratch_for = [&](std::span<const int> there) {
    return builder.scratch(at.local.size() * there.size() * n);
  };
  for (int i = 0; i < at.topology.hosts(); ++i) {
    const int next = shifted(at.host, i, at.topology.hosts());
    const int last = shifted(at.host, -i, at.topology.hosts());
    const auto receivers = at.topology.members(next);
    const auto senders = at.topology.members(last);
    const Slice outgoing = scratch_for(receivers);
    std::uint64_t offset = 0;
    for (const int receiver : receivers) {
      for (int place = 0; place < at.local_size(); ++place, offset += n)
        builder.copy(block(sent, place, receiver), sub_slice(outgoing, offset, n));
    }
    Slice incoming = outgoing;
    if (i != 0) {
      incoming = scratch_for(senders);
      builder.send(at.leaders[static_cast<std::size_t>(next)], outgoing);
      builder.recv(at.leaders[static_cast<std::size_t>(last)], incoming);
    }
    offset = 0;
    for (int place = 0; place < at.local_size(); ++place) {
      for (const int sender : senders) {
        builder.copy(sub_slice(incoming, offset, n), block(received, place, sender));
        offset += n;
      }
    }
  }
}

// Sends the input of each rank to the leader of its host. The leaders exchange these blocks, and each leader
// sends the ranks of its host their outputs. So only one message goes from each host to each other host.
// See Träff, Rougier, "MPI collectives and datatypes for hierarchical all-to-all communication" (2014).
// Cost: 2 ceil(log_k q) + 1 rounds for hosts of q ranks; q^2 n bytes from each host to each other host.
void leaders(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const Position at(problem);
  const std::uint64_t row = problem.count * static_cast<std::uint64_t>(problem.size);
  const std::uint64_t rows = at.place == 0 ? row * at.local.size() : 0;
  const Slice sent = builder.scratch(rows);
  const Slice received = builder.scratch(rows);
  {
    const ScheduleBuilder::Part part(builder, at.local, input(0, row), sent);
    emit_part(builder, "binomial",
              part_of(problem, CollectiveKind::gather, at.place, at.local_size(), 0, row), tuning);
  }
  if (at.place == 0) exchange_rows(builder, problem, at, sent, received);
  const ScheduleBuilder::Part part(builder, at.local, received, output(0, row));
  emit_part(builder, "binomial", part_of(problem, CollectiveKind::scatter, at.place, at.local_size(), 0, row),
            tuning);
}

// Each leader copies the blocks before and after the exchange. They are not in its cache, so a copy costs as
// much per byte as a message within the host.
double leaders_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  const PartCosts parts(problem, tuning, model);
  const double q = parts.local_size();
  const double n = static_cast<double>(problem.count);
  return parts.within(CollectiveKind::gather, "binomial", terms.p() * n) +
         parts.between(CollectiveKind::all_to_all, "pairwise", q * q * n, 1) +
         parts.within(CollectiveKind::scatter, "binomial", terms.p() * n) +
         2 * q * terms.p() * terms.bytes() * model.near.beta;
}

constexpr std::array family = {
    Algorithm{70, "bruck", CollectiveKind::all_to_all, true, radix_knob, always, bruck_cost, bruck},
    Algorithm{71, "pairwise", CollectiveKind::all_to_all, true, window_knob, always, pairwise_cost, pairwise},
    Algorithm{72, "leaders", CollectiveKind::all_to_all, true, radix_knob, leaders_suit, leaders_cost,
              leaders},
    Algorithm{80, "pairwise", CollectiveKind::all_to_all_v, true, window_knob, always, pairwise_cost,
              pairwise_v},
};

}  // namespace

std::span<const Algorithm> all_to_all_algorithms() { return family; }

}  // namespace tutti
