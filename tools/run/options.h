#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/commands.h"
#include "tools/run/binding.h"
#include "tools/run/host_options.h"
#include "tools/run/placement.h"

namespace tutti::tools {

struct OutputOptions {
  std::string directory;  // absolute path of the folder for log files; empty if there are none
  bool to_terminal = true;
  bool merge_stderr = false;
  bool tag = false;
  bool timestamp = false;
};

// `RunOptions` are the options of `tutti run`.
struct RunOptions : HostOptions {
  // These say how many ranks each host gets, and which processors they use.
  PlacementOptions placement;  // `ranks` may be left out only if there are hosts
  Binding binding = Binding::none;

  // These say what the ranks get.
  std::vector<std::string> exports;  // "VAR", "VAR*" or "VAR=VALUE", as given to -x
  // The value for TUTTI_SOCKET_IFNAME if that variable is not set; empty if no option gives it.
  std::string socket_ifname;
  bool mpi_env = false;  // the ranks also get OMPI_COMM_WORLD_*
  // The folder in which ranks start, and in which programs are looked up; empty for the current folder.
  std::string folder;
  OutputOptions output;

  // These say how the job ends.
  std::chrono::nanoseconds kill_grace = std::chrono::seconds(2);
  bool enable_recovery = false;  // the other ranks continue when a rank fails
  // If this is false, the other ranks continue when a rank exits with a status other than 0.
  bool abort_on_non_zero = true;

  bool dry_run = false;  // print what would run, and start nothing
  bool doctor = false;   // test the hosts, and do not run the program
  std::vector<std::string> program;
};

// Returns the absolute path of the folder in which the ranks start.
std::string folder_of(const RunOptions& options);

// Returns the options. For --help it prints the help, and for a wrong option it prints an error. In
// these two cases it returns an exit status instead of options.
std::variant<RunOptions, int> parse_run_options(const Arguments& arguments);

}  // namespace tutti::tools
