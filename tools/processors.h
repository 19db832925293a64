#pragma once

#include <string>

namespace tutti::tools {

// Returns the number of processors that this process and its children can use at once: those that it may run
// on (affinity), or fewer if its control groups (v1 or v2) get only a share of the time. At least 1. `root`
// is the folder of the system's files.
int usable_processors(const std::string& root = "");

}  // namespace tutti::tools
