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

  // Returns the earliest collective in flight, or null if there is none.
  const RankDump::Operation* running() const;
  // Returns the last collective that has ended, or null if there is none.
  const RankDump::Operation* last_over() const;
};

// A `Group` is a communicator with the views of its ranks.
struct Group {
  std::uint64_t context = 0;
  std::vector<int> ranks;
  std::map<int, View> views;  // keys are world ranks

  // Returns true if no operation is in flight, the communicator has not failed, and all ranks have
  // made the same number of calls.
  bool is_quiet() const;
  // Describes which operation each rank is in. Ranks in the same operation share a line. `dumps` maps ranks
  // of the job to their dumps. A rank may have no dump.
  std::string describe(const std::map<int, const RankDump*>& dumps) const;
};

// Returns the seconds from `from_us` to `to_us`, or 0 if `to_us` is earlier. The difference is computed in
// floating point, which cannot overflow.
double seconds_between(std::int64_t from_us, std::int64_t to_us);

std::string format_age(double seconds);
// Returns "#21 all_reduce(count=100, float32, sum)".
std::string numbered(const RankDump::Operation& operation);
// Returns "0-3, 5". The ranks must be sorted.
std::string format_ranks(const std::vector<int>& ranks);
// These return "rank 5" or "ranks 0-3, 5". The ranks must be sorted.
std::string plural(const std::vector<int>& ranks);
std::string plural(const std::set<int>& ranks);

}  // namespace tutti::tools
