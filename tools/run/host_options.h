#pragma once

#include "tools/command_line.h"
#include "tools/run/options.h"

// The options of the command line that `tutti run` and `tutti doctor` have in common.
namespace tutti::tools {

// Declares the options that name the hosts.
void declare_host_list(CLI::App& app, RunOptions& options);
// Declares the options that say how the hosts are reached.
void declare_way(CLI::App& app, RunOptions& options);

}  // namespace tutti::tools
