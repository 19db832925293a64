#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "rendezvous/launch/environment.h"
#include "tools/run/hostfile.h"
#include "tools/run/options.h"
#include "tools/run/start_command.h"

namespace tutti::tools {

// A `HostSource` says on which hosts a job runs, and how they are reached.
struct HostSource {
  std::vector<ListedHost> hosts;  // empty if none are named: all ranks run on this machine
  StartCommand start_command;
  std::string remark;  // tells the user which values came from variables; empty if none did
};

// Reads a whole file. The error names the file.
using ReadText = std::function<Result<std::string>(const std::string& path)>;
Result<std::string> read_text(const std::string& path);

// Finds the hosts of a job. It uses --hostfile and -H if they are given. Otherwise it uses the
// variables of Slurm, Open MPI, MPICH or Intel MPI. Errors say which option, variable or line of a
// hostfile is wrong.
Result<HostSource> find_hosts(const RunOptions& options, const Environment& environment,
                              const ReadText& read = read_text);

}  // namespace tutti::tools
