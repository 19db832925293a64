#pragma once

#include <string>
#include <vector>

#include "tools/debug/dump.h"

namespace tutti::tools {

// `merge` evaluates the dumps of a job's ranks together: for each communicator that is in use, it says where
// its ranks are, which of them make different calls, which are behind and which ranks wait for them. There is
// at most one dump of each rank.
std::string merge(const std::vector<RankDump>& dumps);

}  // namespace tutti::tools
