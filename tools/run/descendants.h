#pragma once

#include <vector>

#include <sys/types.h>

namespace tutti::tools {

// Makes this process adopt every descendant whose parent dies, whatever its session or process group. So no
// descendant gets lost.
void adopt_orphans();

// Returns all processes that have not ended yet.
std::vector<pid_t> living_processes();
// Returns the children of this process that have not ended yet.
std::vector<pid_t> living_children();

// Kills all children until none is left. This includes orphans, which become our children when their parent
// is killed.
void kill_all_children();

}  // namespace tutti::tools
