#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tutti::tools {

// `HostOptions` are the options that name the hosts of a job and say how to reach them. `tutti run`
// and `tutti doctor` share these options. A text that was not given is empty, and a port that was
// not given is 0.
struct HostOptions {
  std::string hostfile;
  std::vector<std::string> hosts;  // the values of -H

  int ssh_port = 0;
  std::string ssh_args;   // words separated by spaces
  std::string agent;      // the command in place of ssh, also words separated by spaces
  std::string prefix;     // an absolute path
  std::string call_back;  // an address or an interface
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);
  bool tries_again = true;  // whether the launcher retries if a host cannot be reached yet
  std::chrono::nanoseconds lease = std::chrono::seconds(6);
};

// Declares the options that name the hosts.
void declare_host_list(CLI::App& app, HostOptions& options);
// Declares the options that say how the hosts are reached.
void declare_way(CLI::App& app, HostOptions& options);

}  // namespace tutti::tools
