#pragma once

#include <string>
#include <vector>

#include "tests/prove/schedule_memory.h"

namespace tutti::test {

// What is wrong with what a collective (any but a barrier) has left in the ranks' memories: outputs that it
// does not define so, or a change to what is not output. `rank_order`: combinations must be in the order of
// ranks.
std::string check_results(const ScheduleCase& test, std::vector<Memory>& memories, Expressions& expressions,
                          bool rank_order);

}  // namespace tutti::test
