#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/commands.h"
#include "tools/run/binding.h"
#include "tools/run/placement.h"

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
  // The hosts, how many ranks each gets, and what their processors are.
  std::string hostfile;            // empty if it was not given
  std::vector<std::string> hosts;  // the values of -H
  PlacementOptions placement;      // `ranks` may be left out only if there are hosts
  Binding binding = Binding::none;

  // The way to the hosts. Texts are empty, and the port is 0, if they were not given.
  int ssh_port = 0;
  std::string ssh_args;   // words between spaces
  std::string agent;      // the command in place of ssh, likewise
  std::string prefix;     // an absolute path
  std::string call_back;  // an address or an interface
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);
  bool tries_again = true;  // if a host cannot be reached yet
  std::chrono::nanoseconds lease = std::chrono::seconds(6);

  // What the ranks are given.
  std::vector<std::string> exports;  // "VAR", "VAR*" or "VAR=VALUE", as given to -x
  std::string socket_ifname;  // for TUTTI_SOCKET_IFNAME, if that is not set; empty if no option says it
  bool mpi_env = false;       // also OMPI_COMM_WORLD_*
  std::string folder;         // where to start ranks and look for programs; empty for the current folder
  OutputOptions output;

  // How the job ends.
  std::chrono::nanoseconds kill_grace = std::chrono::seconds(2);
  bool enable_recovery = false;   // the other ranks continue when a rank fails
  bool abort_on_non_zero = true;  // if not, they continue when a rank exits with a status other than 0

  bool dry_run = false;  // print what would run, and start nothing
  bool doctor = false;   // test the hosts, and do not run the program
  std::vector<std::string> program;
};

// Returns the absolute path of the folder in which the ranks start.
std::string folder_of(const RunOptions& options);

// Returns the options. If the command must end at once (--help or a wrong option), prints the help or the
// error and returns the exit status instead.
std::variant<RunOptions, int> parse_run_options(const Arguments& arguments);

}  // namespace tutti::tools
