#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/circulant.h"
#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"

namespace tutti {
namespace {

Blocks blocks_of(const Problem& problem) {
  return problem.kind == CollectiveKind::all_gather_v ? Blocks::packed(problem.output_counts)
                                                      : Blocks::uniform(problem.count, problem.size);
}

Slice own_input(const Problem& problem, const Blocks& blocks) { return input(0, blocks.count(problem.rank)); }

// This is the algorithm of Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all
// communications in multiport message-passing systems" (1997). After every round, a rank holds k times as
// many blocks as before (k is the radix), in an order that starts with its own block. At the end the blocks
// are rotated into place. Cost for p ranks and blocks of n bytes: ceil(log_k p) rounds of k-1 messages,
// (p-1) n bytes; p n bytes copied.
void bruck(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const int p = problem.size;
  const int r = problem.rank;
  const int k = radix_of(tuning);
  const std::uint64_t n = problem.count;
  const Blocks blocks = Blocks::uniform(n, p);
  const Slice held = builder.scratch(blocks.total());  // blocks r, r + 1, ...
  const Slice all_output = output(0, held.count);
  builder.copy(input(0, n), blocks.of(held, 0));
  for (int have = 1; have < p; have *= k) {
    for (int j = 1; j < k && j * have < p; ++j) {
      const int more = std::min(have, p - j * have);
      builder.send(shifted(r, -j * have, p), have == 1 ? input(0, n) : blocks.of(held, 0, more));
      builder.recv(shifted(r, j * have, p), blocks.of(held, j * have, j * have + more));
    }
  }
  builder.copy(blocks.of(held, 0, p - r), blocks.of(all_output, r, p));
  builder.copy(blocks.of(held, p - r, p), blocks.of(all_output, 0, r));
}

double bruck_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  const int k = radix_of(tuning);
  double seconds = terms.gamma(terms.p() * terms.bytes());
  for (int have = 1; have < problem.size; have *= k) {
    const int messages = std::min(k - 1, (problem.size - 1) / have);
    const double blocks = std::min<double>(have, static_cast<double>(problem.size - have) / messages);
    seconds += terms.burst(messages, blocks * terms.bytes(), terms.shift(have));
  }
  return seconds;
}

// The circulant all-gather needs no rotation (see circulant.h). Cost: ceil(log2 p) rounds of up to two
// messages, (p-1) n bytes.
void circulant(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Blocks blocks = blocks_of(problem);
  builder.copy(own_input(problem, blocks), blocks.in_output(problem.rank));
  circulant_all_gather(builder, problem, blocks, output(0, blocks.total()));
}

// Returns the total size of all blocks in bytes, for all_gather and for all_gather_v.
double total_bytes(const Problem& problem) {
  return static_cast<double>(blocks_of(problem).total()) * problem.element_size;
}

double circulant_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.circulant(total_bytes(problem), false);
}

// This is the recursive doubling of Thakur, Rabenseifner, Gropp (2005). It needs p to be a power of two.
// Cost: log2 p rounds, (p-1) n bytes.
void recursive_doubling(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Blocks blocks = blocks_of(problem);
  const Slice all_output = output(0, blocks.total());
  builder.copy(own_input(problem, blocks), blocks.in_output(problem.rank));
  for (int have = 1; have < problem.size; have *= 2) {
    const int mine = problem.rank & ~(have - 1);
    const int theirs = mine ^ have;
    const int partner = problem.rank ^ have;
    builder.send(partner, have == 1 ? own_input(problem, blocks) : blocks.of(all_output, mine, mine + have));
    builder.recv(partner, blocks.of(all_output, theirs, theirs + have));
  }
}

double recursive_doubling_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  double seconds = 0;
  for (int have = 1; have < problem.size; have *= 2) {
    seconds += terms.burst(1, have * terms.bytes(), terms.exchange(have));
  }
  return seconds;
}

// This is the algorithm of Chen, Zhang, Zhang, Yuan, "Performance evaluation of allgather algorithms on
// terascale Linux cluster with fast Ethernet" (2005). It needs an even p. A rank sends pairs of blocks to its
// left and its right neighbour in turn. Cost: p/2 rounds between neighbours, (p-1) n bytes.
void neighbor_exchange(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const int p = problem.size;
  const int r = problem.rank;
  const bool even = r % 2 == 0;
  const Blocks blocks = blocks_of(problem);
  const Slice all_output = output(0, blocks.total());
  const std::array<int, 2> neighbor = {shifted(r, even ? 1 : -1, p), shifted(r, even ? -1 : 1, p)};
  std::array<int, 2> from = {r & ~1, r & ~1};  // first block of the last pair from each neighbour
  builder.copy(own_input(problem, blocks), blocks.in_output(r));
  builder.send(neighbor[0], own_input(problem, blocks));
  builder.recv(neighbor[0], blocks.in_output(neighbor[0]));
  int mine = r & ~1;
  for (int i = 1; i < p / 2; ++i) {
    const auto side = static_cast<std::size_t>(i % 2);
    from[side] = shifted(from[side], even == (side == 0) ? 2 : -2, p);
    builder.send(neighbor[side], blocks.of(all_output, mine, mine + 2));
    builder.recv(neighbor[side], blocks.of(all_output, from[side], from[side] + 2));
    mine = from[side];
  }
}

bool even_ranks(const Problem& problem) { return problem.size % 2 == 0; }

double neighbor_exchange_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.turn(terms.bytes()) + (terms.p() / 2 - 1) * terms.turn(2 * terms.bytes());
}

// Sends every block once around the ring, in segments. Cost: p-1 steps between neighbours, (p-1) n bytes.
void ring(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const int p = problem.size;
  const int r = problem.rank;
  const Blocks blocks = blocks_of(problem);
  const Segments segments(problem, tuning, blocks.largest(), 4 * static_cast<std::uint64_t>(p));
  builder.copy(own_input(problem, blocks), blocks.in_output(r));
  for (int k = 0; k < p - 1; ++k) {
    const Slice sent = k == 0 ? own_input(problem, blocks) : blocks.in_output(shifted(r, -k, p));
    const Slice received = blocks.in_output(shifted(shifted(r, -1, p), -k, p));
    for (std::uint64_t i = 0; i < std::max(segments.count(sent), segments.count(received)); ++i) {
      if (i < segments.count(sent)) builder.send(shifted(r, 1, p), segments.at(sent, i));
      if (i < segments.count(received)) builder.recv(shifted(r, -1, p), segments.at(received, i));
    }
  }
}

double ring_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  const Blocks blocks = blocks_of(problem);
  // With blocks of different sizes, one step takes the time of the largest block. The other steps
  // take the time of blocks of the mean size.
  const double largest = static_cast<double>(blocks.largest()) * problem.element_size;
  const double mean = total_bytes(problem) / terms.p();
  return terms.ring(terms.p() - 1, mean, false) + terms.pipeline(1, 1, largest, false) -
         terms.pipeline(1, 1, mean, false);
}

constexpr CollectiveKind kind = CollectiveKind::all_gather;
constexpr CollectiveKind kind_v = CollectiveKind::all_gather_v;
constexpr std::array family = {
    Algorithm{30, "bruck", kind, true, radix_knob, always, bruck_cost, bruck},
    Algorithm{31, "circulant", kind, true, 0, always, circulant_cost, circulant},
    Algorithm{32, "recursive_doubling", kind, true, 0, power_of_two_ranks, recursive_doubling_cost,
              recursive_doubling},
    Algorithm{33, "neighbor_exchange", kind, true, 0, even_ranks, neighbor_exchange_cost, neighbor_exchange},
    Algorithm{34, "ring", kind, true, segment_knob, always, ring_cost, ring},
    Algorithm{40, "circulant", kind_v, true, 0, always, circulant_cost, circulant},
    Algorithm{41, "ring", kind_v, true, segment_knob, always, ring_cost, ring},
};

}  // namespace

std::span<const Algorithm> all_gather_algorithms() { return family; }

}  // namespace tutti
