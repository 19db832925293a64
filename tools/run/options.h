#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/commands.h"

namespace tutti::tools {

struct OutputOptions {
  std::string directory;  // absolute path of the log files; empty if there are none
  bool to_terminal = true;
  bool merge_stderr = false;
  bool tag = false;
  bool timestamp = false;
};

// `RunOptions` are the options of `tutti run`.
struct RunOptions {
  int ranks = 0;
  std::vector<std::string> exports;  // "VAR" or "VAR=VALUE", as given to -x
  std::string folder;  // where to start ranks and look for programs; empty for the current folder
  OutputOptions output;
  std::chrono::nanoseconds kill_grace = std::chrono::seconds(2);
  bool enable_recovery = false;  // the other ranks continue when a rank fails
  std::vector<std::string> program;
};

// Returns the options. If the command must end at once (--help or a wrong option), prints the help or the
// error and returns the exit status instead.
std::variant<RunOptions, int> parse_run_options(const Arguments& arguments);

}  // namespace tutti::tools
