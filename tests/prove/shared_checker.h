#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/prove/schedule_checker.h"

namespace tutti::test {

// Proves shared schedules, one for each rank, as `check_schedules` does for schedules of messages.
// Runs the steps of all ranks in an order drawn from `seed`, in which some ranks run far ahead of
// others. Checks that
//   - all ranks agree on how much of the windows they use, and the windows are that large;
//   - slices lie in their buffers, overlap exactly or not at all, and belong to the rank itself, to a window,
//     or to memory that a vote has found to be registered (`reach` in collectives/schedule/registered.h);
//   - every awaited signal is given: no deadlock;
//   - any two accesses to a cell, at least one of them a write, are ordered by signals: no race;
//   - no rank accesses another rank's registered memory once that other rank may have left the
//     operation;
//   - the results are right, as for messages.
// No signal has to follow the last accesses, since SharedExecutor itself decides when the next
// operation may use the windows.
std::string check_shared_schedules(const std::vector<Schedule>& schedules, const ScheduleCase& test,
                                   bool rank_order, std::uint32_t seed);

// Returns whether two shared schedules give and await the same signals, and use the windows in the same way.
bool same_signals(const Schedule& a, const Schedule& b);

}  // namespace tutti::test
