#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "tools/run/agent_events.h"

namespace tutti::tools {

// A `RankFailure` is what the launcher tells the user about a rank that has failed.
struct RankFailure {
  int rank = 0;
  std::string host;
  pid_t pid = 0;
  ExitStatus status;
  std::string others = {};                   // such as "the others continue"; empty if there are no others
  std::string stream = {};                   // the stream of `last_lines`: "stderr", or "output" for both
  std::vector<std::string> last_lines = {};  // empty if the rank has written nothing there
};

// Returns the launcher's lines about the failure.
std::string failure_report(const RankFailure& failure);

// Returns "exited with status 1" or "was ended by signal 9 (Killed)".
std::string describe(ExitStatus status);

}  // namespace tutti::tools
