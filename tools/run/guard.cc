#include "tools/run/guard.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <iostream>
#include <system_error>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error_text.h"
#include "tools/command_line.h"
#include "tools/run/descendants.h"
#include "tools/run/watch.h"

namespace tutti::tools {
namespace {

constexpr timespec look_pause = {1, 0};  // the time between two checks for a sign of life

[[noreturn]] void run_child(const std::string& name, pid_t parent, const sigset_t& mask,
                            const std::function<int()>& body) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(exit_failure);  // the parent died before prctl took effect
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  int status = exit_failure;
  try {
    adopt_orphans();
    status = body();
  } catch (const std::system_error& error) {
    std::cerr << name << ": cannot start: " << error_text(error.code().value()) << std::endl;
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << std::endl;
  }
  std::cout.flush();
  _exit(status);
}

// Passes signals on to the child until the child has ended. Returns the child's wait status.
int wait_handing_on(pid_t child, const sigset_t& signals, Watch* watch) {
  for (;;) {
    siginfo_t info;
    const int signal =
        watch != nullptr ? sigtimedwait(&signals, &info, &look_pause) : sigwaitinfo(&signals, &info);
    if (watch != nullptr && watch->is_overdue()) kill(child, SIGKILL);
    if (signal == SIGCHLD) {
      int status = 0;
      if (waitpid(child, &status, WNOHANG) == child) return status;
    } else if (signal > 0) {
      kill(child, signal);
      // The child stops the ranks but keeps running itself. This process stops too, so that the shell
      // notices.
      if (signal == SIGTSTP) raise(SIGSTOP);
    }
  }
}

}  // namespace

std::vector<int> signals_to_handle() {
  // SIGTERM is handled even if it was ignored at the start, since the kernel sends SIGTERM to the
  // child when this process is killed.
  std::vector<int> result = {SIGTERM};
  for (const int number : {SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT}) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) result.push_back(number);
  }
  return result;
}

int run_guarded(const std::string& name, const std::function<int()>& body, Watch* watch) {
  adopt_orphans();
  sigset_t signals;
  sigset_t previous;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (const int number : signals_to_handle()) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, &previous);

  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) run_child(name, self, previous, body);

  const int status = wait_handing_on(child, signals, watch);
  kill_all_children();
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::cerr << name << ": the process that watches the ranks was ended by signal " << WTERMSIG(status) << " ("
            << strsignal(WTERMSIG(status)) << "); so were the ranks\n";
  return exit_signal_base + WTERMSIG(status);
}

}  // namespace tutti::tools
