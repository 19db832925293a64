#pragma once

#include <string>

namespace tutti::tools {

// Returns how many processors the processes that we start can use at once: as many as we may run on
// (affinity), or less if our control groups (v1 or v2) have only a share of the time. At least 1. `root`: the
// folder of the system's files.
int usable_processors(const std::string& root = "");

}  // namespace tutti::tools
