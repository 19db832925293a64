#pragma once

#include <string>
#include <vector>

#include "tests/prove/schedule_memory.h"

namespace tutti::test {

// Returns what is wrong with the ranks' memories after a collective (any but a barrier), or nothing: wrong
// outputs, or a change outside the output. `rank_order`: combinations must be in the order of ranks.
std::string check_results(const ScheduleCase& test, std::vector<Memory>& memories, Expressions& expressions,
                          bool rank_order);

}  // namespace tutti::test
