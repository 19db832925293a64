#pragma once

#include <vector>

#include <sys/types.h>

namespace tutti::tools {

// Makes this process adopt every descendant whose parent dies. So no descendant gets lost, even if
// it has its own session or process group.
void adopt_orphans();

// Returns all processes on this host that have not ended yet.
std::vector<pid_t> living_processes();
// Returns the children of this process that have not ended yet.
std::vector<pid_t> living_children();

// Kills all children until none is left. This includes orphans, which become children of this process when
// their parent is killed.
void kill_all_children();

}  // namespace tutti::tools
