#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tutti::tools {

class Watch;

// Returns the signals that a launcher handles or passes on. It leaves out signals that were ignored
// when the launcher started, for example by nohup or in a shell's background job. SIGTERM is always included.
std::vector<int> signals_to_handle();

// Runs `body` in a child process and returns its exit status. The parent, which is this process,
// waits, and passes on the signals that it receives. Each process cleans up if the other one is
// killed. If the parent is killed by SIGKILL, the child gets SIGTERM. If the child is killed, the
// parent inherits the child's descendants and kills them. With a watch, the parent also kills the
// child if the child's sign of life is overdue.
//
// The child has its own session, so that a terminal's signals reach it only once, through the parent.
// Messages on stderr begin with `name`. Call this while the process has one thread.
int run_guarded(const std::string& name, const std::function<int()>& body, Watch* watch = nullptr);

}  // namespace tutti::tools
