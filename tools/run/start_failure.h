#pragma once

#include <string>

#include "tools/run/spawn.h"

namespace tutti::tools {

// `StartFailure` says why a job could not start. Its exit status is the one that a shell would
// return.
struct StartFailure {
  int exit_status;
  std::string message;
};

// Describes why the program `name` cannot be started after a search in `search_path` (PATH). The message
// suggests what the user may have meant.
StartFailure cannot_start(const std::string& name, const FoundProgram& found, const std::string& search_path);

}  // namespace tutti::tools
