#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/schedule/algorithm.h"

namespace tutti::test {

// `ScheduleCase` is one collective as all ranks see it, with the counts that the _v kinds need.
class ScheduleCase {
 public:
  // `count` has the same meaning as in `Problem`. The blocks of the _v kinds have 0 to 2 * count
  // elements.
  ScheduleCase(CollectiveKind kind, int size, std::uint64_t count, int root, bool in_place);

  Problem base;  // tests may change it, except for kind, size and counts; `rank` is ignored

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

// Proves an algorithm on one case, without a network and without data. Every element is an
// expression over contributions, which are pairs (rank, element). Checks that
//
// clang-format off
//   - every message is sent and received once, with the same length;
//   - all steps can be carried out although sends are synchronous (`seed` picks the next of the possible steps);
//   - steps stay within their buffers and read nothing undefined, and the input and output of a step are either the same
//     range or do not overlap;
//   - if two steps conflict, the dependencies put one before the other, so timing never decides;
//   - every rank ends with the result of the collective: each contribution once, and in rank order
//     if the algorithm or the operation demands it; the result of all_reduce has the same
//     expression tree on every rank, and so the same bits;
//   - no rank changes its input (in place: the part of its buffer that is not output), and every
//     rank learns in a barrier that every other rank has come.
// clang-format on
//
// Returns a description of the error, or an empty text. For shared schedules, this function calls
// `check_shared_schedules` instead.
std::string check_algorithm(const Algorithm& algorithm, const ScheduleCase& test, const Tuning& tuning,
                            std::uint32_t seed);

// Checks given schedules in the same way. There is one schedule for each rank.
std::string check_schedules(const std::vector<Schedule>& schedules, const ScheduleCase& test, bool rank_order,
                            std::uint32_t seed);

// Returns whether two schedules exchange messages with equal directions, peers, indices and
// lengths. Shared schedules must exchange equal signals instead.
bool same_messages(const Schedule& a, const Schedule& b);

}  // namespace tutti::test
