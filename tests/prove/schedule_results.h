#pragma once

#include <string>
#include <vector>

#include "tests/prove/schedule_memory.h"

namespace tutti::test {

// Returns what is wrong with the ranks' memories after a collective (any but a barrier), or an empty text:
// wrong outputs, or a change outside the output. `rank_order`: contributions must be combined in rank order.
std::string check_results(const ScheduleCase& test, std::vector<Memory>& memories, Expressions& expressions,
                          bool rank_order);

}  // namespace tutti::test
