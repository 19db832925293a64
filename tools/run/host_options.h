#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tutti::tools {

// `HostOptions` name the hosts of a job and the way to them. `tutti run` and `tutti doctor` have them in
// common. Texts are empty, and the port is 0, if they were not given.
struct HostOptions {
  std::string hostfile;
  std::vector<std::string> hosts;  // the values of -H

  int ssh_port = 0;
  std::string ssh_args;   // words between spaces
  std::string agent;      // the command in place of ssh, likewise
  std::string prefix;     // an absolute path
  std::string call_back;  // an address or an interface
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);
  bool tries_again = true;  // if a host cannot be reached yet
  std::chrono::nanoseconds lease = std::chrono::seconds(6);
};

// Declares the options that name the hosts.
void declare_host_list(CLI::App& app, HostOptions& options);
// Declares the options that say how the hosts are reached.
void declare_way(CLI::App& app, HostOptions& options);

}  // namespace tutti::tools
