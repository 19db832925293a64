#pragma once

#include <string>
#include <vector>

#include "tools/debug/dump.h"

namespace tutti::tools {

// `merge` says what the dumps of a job's ranks show together: for each communicator that is in use, where its
// ranks are, which of them call different things, which are behind and who waits for them. There is at most
// one dump of each rank.
std::string merge(const std::vector<RankDump>& dumps);

}  // namespace tutti::tools
