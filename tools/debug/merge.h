#pragma once

#include <string>
#include <vector>

#include "tools/debug/dump.h"

namespace tutti::tools {

// `merge` reports what the dumps of a job's ranks show together. For each communicator in use it says which
// operation each rank is in, which ranks made different calls, which ranks are behind, and which ranks wait
// for those that are behind. `dumps` has at most one dump of each rank.
std::string merge(const std::vector<RankDump>& dumps);

}  // namespace tutti::tools
