#pragma once

#include <vector>

#include <sys/types.h>

namespace tutti::tools {

// From now on a descendant whose parent dies becomes a child of this process, whatever session or process
// group it has put itself into: none gets away.
void adopt_orphans();

// The children of this process that have not ended yet.
std::vector<pid_t> living_children();

// Kills all children, and those that become children by that, until there are none.
void kill_all_children();

}  // namespace tutti::tools
