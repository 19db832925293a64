#include "tools/run/run.h"

#include <variant>

#include <fcntl.h>
#include <unistd.h>

#include "tools/run/guard.h"
#include "tools/run/job.h"

namespace tutti::tools {
namespace {

// Opens those standard streams that are closed. Otherwise a file that we open later would get the descriptor
// number of a closed stream.
void open_standard_streams() {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= 2);
  if (fd > 2) close(fd);
}

// Replaces our stdin by /dev/null if the launcher runs in the background of a terminal. The terminal's input
// then belongs to another job. The ranks could still read it, since their sessions are not subject to the
// terminal's job control.
void leave_terminal_input() {
  const pid_t foreground = isatty(STDIN_FILENO) ? tcgetpgrp(STDIN_FILENO) : -1;
  if (foreground < 0 || foreground == getpgrp()) return;
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0) return;
  dup2(nothing, STDIN_FILENO);
  close(nothing);
}

}  // namespace

int launch(const RunOptions& options) {
  open_standard_streams();
  leave_terminal_input();
  return run_guarded([&options] {
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
