#pragma once

#include <string>
#include <vector>

#include "tests/prove/schedule_memory.h"

namespace tutti::test {

// Checks the ranks' memories after any collective except a barrier. The outputs must be right, and
// the rest must be unchanged. With `rank_order`, contributions must be combined in rank order.
// Returns an error text, or an empty text.
std::string check_results(const ScheduleCase& test, std::vector<Memory>& memories, Expressions& expressions,
                          bool rank_order);

}  // namespace tutti::test
