#pragma once

#include <string>
#include <vector>

#include "tools/debug/dump.h"

namespace tutti::tools {

// `merge` reports what the dumps of a job's ranks show together: for each communicator that is in use, the
// operations that its ranks are in, the ranks that make different calls, those that are behind and the ranks
// that wait for them. There is at most one dump of each rank.
std::string merge(const std::vector<RankDump>& dumps);

}  // namespace tutti::tools
