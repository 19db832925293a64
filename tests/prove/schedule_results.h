#pragma once

#include <string>
#include <vector>

#include "tests/prove/schedule_memory.h"

namespace tutti::test {

// Checks the ranks' memories after a collective (any but a barrier): the outputs must be right, and nothing
// else may have changed. With `rank_order`, contributions must be combined in rank order. Returns what is
// wrong, or an empty text.
std::string check_results(const ScheduleCase& test, std::vector<Memory>& memories, Expressions& expressions,
                          bool rank_order);

}  // namespace tutti::test
