#pragma once

#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tools/run/agent_events.h"

namespace tutti::tools {

// A `RankFailure` describes a failed rank for the launcher's report to the user.
struct RankFailure {
  int rank = 0;
  std::string host;
  pid_t pid = 0;
  ExitStatus status;
  std::string others = {};                   // such as "the others continue"; empty if there are no others
  std::string stream = {};                   // the stream of `last_lines`: "stderr", or "output" if merged
  std::vector<std::string> last_lines = {};  // empty if the rank has written nothing to the stream
  // True if an agent started the rank, with the environment of the rank's host.
  bool by_agent = false;
};

// Returns the launcher's lines about the failure.
std::string failure_report(const RankFailure& failure);

// A `LostHost` describes a host that the launcher can no longer reach, for the report to the user.
struct LostHost {
  std::string host;
  std::span<const int> ranks = {};  // the host's ranks that had not ended yet
  std::string why;
  std::string others = {};  // as in `RankFailure`
};

// Returns the launcher's line about the loss.
std::string lost_report(const LostHost& lost);

// Returns "exited with status 1" or "was ended by signal 9 (Killed)".
std::string describe(ExitStatus status);

}  // namespace tutti::tools
