#pragma once

#include <span>
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
  bool by_agent = false;                     // the rank has the environment of its host
};

// Returns the launcher's lines about the failure.
std::string failure_report(const RankFailure& failure);

// A `LostHost` is what the launcher tells the user about a host that it cannot reach any more.
struct LostHost {
  std::string host;
  std::span<const int> ranks = {};  // those that have not ended before
  std::string why;
  std::string others = {};  // as in `RankFailure`
};

// Returns the launcher's line about the loss.
std::string lost_report(const LostHost& lost);

// Returns "exited with status 1" or "was ended by signal 9 (Killed)".
std::string describe(ExitStatus status);

}  // namespace tutti::tools
