#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/prove/schedule_checker.h"

namespace tutti::test {

// Proves shared schedules, one per rank, as `check_schedules` does those of messages. All ranks' steps are
// interleaved in an order drawn from `seed`, in which some run far ahead of others. Checks that
//   - all ranks agree on how much of the windows they use, and the windows have that much;
//   - slices lie in their buffers, overlap only exactly, and belong to the rank itself, to a window, or to
//     registered memory that the vote has found (see `reach`);
//   - every signal that is awaited is given: no deadlock;
//   - any two accesses to a cell, at least one of them a write, are ordered by signals: no race;
//   - no rank touches another's registered memory after that rank may have left;
//   - the results are right, as for messages.
// SharedExecutor decides when windows are free for the next operation, so the last accesses need no signal.
std::string check_shared_schedules(const std::vector<Schedule>& schedules, const ScheduleCase& test,
                                   bool rank_order, std::uint32_t seed);

// Returns whether two shared schedules give and await the same signals, and use the windows alike.
bool same_signals(const Schedule& a, const Schedule& b);

}  // namespace tutti::test
