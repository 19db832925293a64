#pragma once

#include <string>
#include <vector>

#include "tools/debug/dump.h"

namespace tutti::tools {

// What the dumps of the ranks of a job say together: for each communicator in which something is going on,
// where its ranks are, which of them call different things, which are behind and who waits for them. Of each
// rank there is one dump at most.
std::string merge(const std::vector<RankDump>& dumps);

// "0-3, 5", of sorted numbers.
std::string format_ranks(const std::vector<int>& ranks);

}  // namespace tutti::tools
