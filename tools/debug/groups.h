#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/debug/dump.h"

namespace tutti::tools {

// A `View` is a communicator as the dump of one rank shows it.
struct View {
  const RankDump* dump;
  const RankDump::Communicator* communicator;

  // The earliest collective in flight; null if there is none.
  const RankDump::Operation* running() const;
  // The last collective that is over; null if there is none.
  const RankDump::Operation* last_over() const;
};

// A `Group` is a communicator with the views of its ranks.
struct Group {
  std::uint64_t context = 0;
  std::vector<int> ranks;
  std::map<int, View> views;  // by world rank

  // Whether nothing is in flight, nothing has failed, and all ranks have made equally many calls.
  bool is_quiet() const;
  // Describes the operations that the ranks are in, with one line for those in the same. `dumps` are those of
  // all ranks of the job.
  std::string describe(const std::map<int, const RankDump*>& dumps) const;
};

// Differences of floating-point numbers, which cannot overflow; 0 if `to_us` is the earlier one.
double seconds_between(std::int64_t from_us, std::int64_t to_us);

std::string format_age(double seconds);
// "#21 all_reduce(count=100, float32, sum)"
std::string numbered(const RankDump::Operation& operation);
// "0-3, 5", of sorted numbers.
std::string format_ranks(const std::vector<int>& ranks);
// "rank 5" or "ranks 0-3, 5", of sorted numbers.
std::string plural(const std::vector<int>& ranks);
std::string plural(const std::set<int>& ranks);

}  // namespace tutti::tools
