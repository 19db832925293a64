#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/schedule/algorithm.h"

namespace tutti::test {

// `ScheduleCase` is one collective as all ranks see it, with the counts that the _v kinds need.
class ScheduleCase {
 public:
  // `count` is as in Problem; the blocks of the _v kinds have 0 to 2 * count elements.
  ScheduleCase(CollectiveKind kind, int size, std::uint64_t count, int root, bool in_place);

  Problem base;  // may be changed, except for kind, size and counts; `rank` is ignored

  Problem at(int rank) const;
  // Returns a text such as "all_reduce p=3 count=7 root=0 in place".
  std::string describe() const;
  // Returns the number of elements that `from` sends to `to` in an all_to_all_v.
  std::uint64_t sent(int from, int to) const { return counts_[index(from, to)]; }

 private:
  std::size_t index(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(base.size) +
           static_cast<std::size_t>(to);
  }
  std::vector<std::uint64_t> counts_;  // all_to_all_v: [from][to]; other kinds: [0][rank]
  std::vector<std::vector<std::uint64_t>> input_counts_, output_counts_;  // [r]: as rank r passes them
};

// Proves an algorithm on one case, without a network and without data: every element is an expression over
// (rank, element) contributions. Checks that
//
// clang-format off
//   - every message is sent and received once, with the same length;
//   - all steps can be carried out although sends are synchronous (`seed` picks the next of the possible steps);
//   - steps stay within their buffers and read nothing undefined, and the input and output of a step are either the same
//     range or do not overlap;
//   - if two steps conflict, the dependencies put one before the other, so timing never decides;
//   - every rank ends with what the collective defines: each contribution once, and in rank order if the algorithm or
//     the operation demands it; all_reduce has the same expression tree, hence the same bits, on every rank;
//   - no rank changes its input (in place: the part of its buffer that is not output), and a barrier makes every rank
//     hear of every other.
// clang-format on
//
// Returns what is wrong, or an empty text. For shared schedules see check_shared_schedules.
std::string check_algorithm(const Algorithm& algorithm, const ScheduleCase& test, const Tuning& tuning,
                            std::uint32_t seed);

// Does the same for given schedules, one per rank.
std::string check_schedules(const std::vector<Schedule>& schedules, const ScheduleCase& test, bool rank_order,
                            std::uint32_t seed);

// Returns whether two schedules exchange messages with the same directions, peers, indices and lengths. If
// they are shared schedules, returns whether they exchange the same signals.
bool same_messages(const Schedule& a, const Schedule& b);

}  // namespace tutti::test
