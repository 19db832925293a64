#pragma once

#include <string>

#include "tools/run/spawn.h"

namespace tutti::tools {

// `StartFailure` is the reason why not all ranks could be started, and the exit status that a shell would
// give for it.
struct StartFailure {
  int exit_status;
  std::string message;
};

// For a program called `name` that was looked for in `search_path` (PATH); suggests what the user may have
// meant.
StartFailure cannot_start(const std::string& name, const FoundProgram& found, const std::string& search_path);

}  // namespace tutti::tools
