#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rendezvous/launch/launch.h"
#include "tools/run/host_lookup.h"
#include "tools/run/start_command.h"

namespace tutti::tools {

// `HostCommands` are the commands by which the launcher runs `tutti agent` on the hosts of a job.
// The launcher needs no other program (such as ssh) for a host that is its own machine.
class HostCommands {
 public:
  // `prefix` (--prefix) is the folder in which tutti is installed on the other hosts. An empty text
  // means the same path as on this machine.
  HostCommands(StartCommand way, std::string prefix);

  // Returns the path of tutti on the host.
  std::string path_on(const LocatedHost& host) const;
  // Returns the command that starts the host's agent. `number` is the host's number in the job. The
  // agent calls the launcher at one of `endpoints`.
  std::vector<std::string> start(const LocatedHost& host, const std::string& job, std::size_t number,
                                 const std::vector<std::string>& endpoints) const;
  // Returns the command that ends all remaining processes of the job on the host.
  std::vector<std::string> end(const LocatedHost& host, const std::string& job) const;
  // Returns the environment for these commands.
  Environment environment(const LocatedHost& host) const;

 private:
  StartCommand way_to(const LocatedHost& host) const;
  std::vector<std::string> run(const LocatedHost& host, std::vector<std::string> words) const;

  StartCommand way_;
  std::string prefix_;
};

}  // namespace tutti::tools
