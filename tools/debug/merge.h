#pragma once

#include <string>
#include <vector>

#include "tools/debug/dump.h"

namespace tutti::tools {

// `merge` combines the dumps of a job's ranks into a report. It describes each communicator in use:
// the operation of each rank, the ranks that made different calls, the ranks that are behind, and
// the ranks that wait for them. `dumps` has at most one dump of each rank.
std::string merge(const std::vector<RankDump>& dumps);

}  // namespace tutti::tools
