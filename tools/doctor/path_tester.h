#pragma once

#include <string>
#include <vector>

#include "tools/doctor/path.h"

namespace tutti::tools::doctor {

// Connects to all targets at the same time. Then measures the paths to the reached targets, one
// after the other. Returns a path for each target.
std::vector<Path> test_paths(const std::vector<Target>& targets, const std::string& pass);

}  // namespace tutti::tools::doctor
