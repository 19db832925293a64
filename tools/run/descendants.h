#pragma once

#include <vector>

#include <sys/types.h>

namespace tutti::tools {

// Makes this process the new parent of every descendant whose parent dies, in any session or process group,
// so that none is lost.
void adopt_orphans();

// Returns the children of this process that have not ended yet.
std::vector<pid_t> living_children();

// Kills all children until none is left, including the orphans that become children when their parent is
// killed.
void kill_all_children();

}  // namespace tutti::tools
