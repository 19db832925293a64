#pragma once

#include <string>

#include "tools/run/spawn.h"

namespace tutti::tools {

// `StartFailure` says why the ranks could not all be started, with the exit status that a shell would return
// for that.
struct StartFailure {
  int exit_status;
  std::string message;
};

// Describes why the program `name`, which was looked for in `search_path` (PATH), cannot be started. The
// message suggests what the user may have meant.
StartFailure cannot_start(const std::string& name, const FoundProgram& found, const std::string& search_path);

}  // namespace tutti::tools
