#pragma once

#include <string>

namespace tutti::tools {

// How many processors the processes that we start can use at once: as many as we may run on (affinity), or
// less where our control groups (v1 or v2) have a share of the time only. At least 1. `root`: where the
// system's files are found.
int usable_processors(const std::string& root = "");

}  // namespace tutti::tools
