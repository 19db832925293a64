#pragma once

#include <functional>
#include <vector>

namespace tutti::tools {

// Returns the signals that a launcher acts on or passes on, except those that were ignored when it started
// (nohup, a shell's background jobs).
std::vector<int> signals_to_handle();

// Runs `body` in a child process and returns its exit status. This process waits, and passes on the signals
// that it receives. If either process is killed, the other cleans up. If this process is killed (SIGKILL
// cannot be handled), the child gets SIGTERM. If the child is killed, this process inherits the child's
// descendants and kills them.
//
// The child has a session of its own, so that a terminal's signals reach it only once, through this process.
// Call this while the process has one thread.
int run_guarded(const std::function<int()>& body);

}  // namespace tutti::tools
