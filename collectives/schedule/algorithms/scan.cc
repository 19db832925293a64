#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"

namespace tutti {
namespace {

// This is the recursive doubling of Hillis, Steele, "Data parallel algorithms" (1986). Before the round of
// distance d, a rank holds the combination of the d ranks up to and including itself. It sends this
// combination to the rank that is d further on. Cost for p ranks and vectors of n bytes: ceil(log2 p) rounds
// of n bytes, each combined.
void scan_doubling(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const int r = problem.rank;
  int stages = 0;
  for (int distance = 1; distance <= r; distance *= 2) ++stages;
  Alternation buffers(builder, problem, stages);
  for (int distance = 1; distance < problem.size; distance *= 2) {
    if (r + distance < problem.size) builder.send(r + distance, buffers.current());
    if (r - distance < 0) continue;
    builder.recv_reduce(r - distance, buffers.current(), buffers.next(), MessageSide::left);
    buffers.advance();
  }
}

double scan_doubling_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  // Low ranks run ahead, and their early messages delay messages that are needed sooner. In the simulator,
  // this delays each round by half of the time that n bytes take.
  double seconds = 0;
  for (int distance = 1; distance < problem.size; distance *= 2) {
    const Path path = terms.shift(distance);
    seconds += terms.reducing_burst(1, terms.bytes(), path) + terms.bytes() * path.beta / 2;
  }
  return seconds;
}

// In an exclusive scan, a rank keeps two combinations. One includes the rank's own input, and is sent to
// other ranks. The other excludes that input, and is the rank's result. Rank 0 has no result, and its output
// is not touched. Cost: ceil(log2 p) rounds of n bytes, each combined twice.
void exscan_doubling(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const int r = problem.rank;
  const int p = problem.size;
  const std::uint64_t n = problem.count;
  const Slice result = output(0, n);
  const bool relays = r > 0 && r + 2 < p;  // a later rank needs more than this rank's input
  Slots arrived(builder, relays ? n : 0, 2);
  Slots held(builder, relays ? n : 0, 2);
  Slice inclusive = input(0, n);
  for (int distance = 1; distance < p; distance *= 2) {
    if (r + distance < p) builder.send(r + distance, inclusive);
    if (r - distance < 0) continue;
    const bool first = distance == 1;
    const bool relays_on = r + 2 * distance < p;
    if (!first && !relays_on) {
      builder.recv_reduce(r - distance, result, result, MessageSide::left);
      continue;
    }
    // If the call is in place, `result` still holds this rank's input. The message must not overwrite the
    // input before it is combined.
    const Slice message = first && !(relays_on && problem.in_place) ? result : arrived.next(n);
    builder.recv(r - distance, message);
    if (relays_on) {
      const Slice sum = held.next(n);
      builder.reduce(message, inclusive, sum);
      inclusive = sum;
    }
    if (first) {
      builder.copy(message, result);
    } else {
      builder.reduce(message, result, result);
    }
  }
}

double exscan_doubling_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  double seconds = 0;
  for (int distance = 1; distance < problem.size; distance *= 2) {
    seconds += terms.reducing_burst(1, terms.bytes(), terms.shift(distance)) + terms.gamma(terms.bytes());
  }
  return seconds;
}

// Sends partial results from rank to rank in segments. Cost: p-1 hops of one segment, then n bytes at full
// speed.
void scan_chain(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const int r = problem.rank;
  const Slice own = input(0, problem.count);
  const Slice result = output(0, problem.count);
  const Segments segments(problem, tuning, problem.count, 2);
  for (std::uint64_t i = 0; i < segments.count(own); ++i) {
    Slice sum = segments.at(own, i);
    if (r > 0) {
      builder.recv_reduce(r - 1, sum, segments.at(result, i), MessageSide::left);
      sum = segments.at(result, i);
    }
    if (r + 1 < problem.size) builder.send(r + 1, sum);
  }
  if (r == 0) builder.copy(own, result);
}

// In the exclusive chain, the message that a rank receives is its result. The rank combines that message with
// its own input, and sends the combination to the next rank.
void exscan_chain(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const int r = problem.rank;
  const bool is_last = r + 1 == problem.size;
  const Slice own = input(0, problem.count);
  const Segments segments(problem, tuning, problem.count, 4);
  const bool relays = r > 0 && !is_last;
  Slots arrived(builder, relays && problem.in_place ? segments.unit() : 0, 8);
  Slots sums(builder, relays ? segments.unit() : 0, 8);
  for (std::uint64_t i = 0; i < segments.count(own); ++i) {
    const Slice mine = segments.at(own, i);
    const Slice result = segments.at(output(0, problem.count), i);
    Slice outgoing = mine;
    if (r > 0) {
      // If the call is in place, `result` still holds this rank's input, which is needed below.
      const Slice message = relays && problem.in_place ? arrived.next(mine.count) : result;
      builder.recv(r - 1, message);
      if (!is_last) {
        outgoing = sums.next(mine.count);
        builder.reduce(message, mine, outgoing);
      }
      builder.copy(message, result);
    }
    if (!is_last) builder.send(r + 1, outgoing);
  }
}

double chain_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.pipeline(terms.p() - 1, 1, terms.bytes(), true);
}

constexpr CollectiveKind scan = CollectiveKind::scan;
constexpr CollectiveKind exscan = CollectiveKind::exscan;
constexpr std::array family = {
    Algorithm{130, "recursive_doubling", scan, true, 0, always, scan_doubling_cost, scan_doubling},
    Algorithm{131, "chain", scan, true, segment_knob, always, chain_cost, scan_chain},
    Algorithm{140, "recursive_doubling", exscan, true, 0, always, exscan_doubling_cost, exscan_doubling},
    Algorithm{141, "chain", exscan, true, segment_knob, always, chain_cost, exscan_chain},
};

}  // namespace

std::span<const Algorithm> scan_algorithms() { return family; }

}  // namespace tutti
