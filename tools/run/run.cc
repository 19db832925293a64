#include "tools/run/run.h"

#include <variant>

#include <unistd.h>

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
  const auto options = parse_run_options(arguments);
  if (const int* status = std::get_if<int>(&options)) return *status;
  return launch(std::get<RunOptions>(options));
}

}  // namespace tutti::tools
