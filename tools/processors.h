#pragma once

#include <string>

namespace tutti::tools {

// Returns the number of processors that this process and its children can use at once. These are the
// processors in its affinity mask, or fewer if its control groups (v1 or v2) limit its processor time. The
// result is at least 1. `root` is the folder that holds /proc and /sys, for tests.
int usable_processors(const std::string& root = "");

}  // namespace tutti::tools
