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

// Replaces our stdin with /dev/null if the launcher runs in the background of a terminal. In that
// case the terminal's input belongs to another job. The ranks could still read it, because the
// terminal's job control does not apply to their session.
void leave_terminal_input() {
  const pid_t foreground = isatty(STDIN_FILENO) ? tcgetpgrp(STDIN_FILENO) : -1;
  if (foreground >= 0 && foreground != getpgrp()) discard_stream(STDIN_FILENO);
}

// Sets TUTTI_SOCKET_IFNAME in this process, and not only for the ranks. So agents on other hosts
// get this variable with the launcher's other TUTTI_* variables, and -x can override it.
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
