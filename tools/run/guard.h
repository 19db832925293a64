#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tutti::tools {

class Watch;

// Returns the signals that a launcher acts on or passes on, except those that were ignored when it started
// (nohup, a shell's background jobs).
std::vector<int> signals_to_handle();

// Runs `body` in a child process and returns its exit status. This process waits, and passes on the signals
// that it receives. If either process is killed, the other cleans up. If this process is killed (SIGKILL
// cannot be handled), the child gets SIGTERM. If the child is killed, this process inherits the child's
// descendants and kills them. With a watch, this process also kills the child if that is overdue with a sign.
//
// The child has a session of its own, so that a terminal's signals reach it only once, through this process.
// Messages on stderr begin with `name`. Call this while the process has one thread.
int run_guarded(const std::string& name, const std::function<int()>& body, Watch* watch = nullptr);

}  // namespace tutti::tools
