#include "tools/run/run.h"

#include <cstdlib>
#include <variant>

#include <unistd.h>

#include "tools/command_line.h"
#include "tools/doctor/doctor.h"
#include "tools/run/dry_run.h"
#include "tools/run/guard.h"
#include "tools/run/job.h"
#include "tools/run/standard_streams.h"

namespace tutti::tools {
namespace {

// Replaces our stdin by /dev/null if the launcher runs in the background of a terminal. The terminal's input
// then belongs to another job. The ranks could still read it, since their sessions are not subject to the
// terminal's job control.
void leave_terminal_input() {
  const pid_t foreground = isatty(STDIN_FILENO) ? tcgetpgrp(STDIN_FILENO) : -1;
  if (foreground >= 0 && foreground != getpgrp()) discard_stream(STDIN_FILENO);
}

// Sets TUTTI_SOCKET_IFNAME here, and not only for the ranks: the agents on other hosts get the launcher's
// TUTTI_* variables, and -x can override this one.
void choose_interfaces(const RunOptions& options) {
  const char* chosen = getenv("TUTTI_SOCKET_IFNAME");
  if (options.socket_ifname.empty() || (chosen != nullptr && *chosen != '\0')) return;
  setenv("TUTTI_SOCKET_IFNAME", options.socket_ifname.c_str(), 1);
}

}  // namespace

int launch(const RunOptions& options) {
  open_standard_streams();
  leave_terminal_input();
  return run_guarded("tutti run", [&options] {
    Job job(options);
    return job.run();
  });
}

int run_command(const Arguments& arguments) {
  const auto parsed = parse_run_options(arguments);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  const RunOptions& options = std::get<RunOptions>(parsed);
  choose_interfaces(options);
  if (options.dry_run) return dry_run(options);
  if (options.doctor) return doctor::examine(options, {});
  return launch(options);
}

}  // namespace tutti::tools
