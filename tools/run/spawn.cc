#include "tools/run/spawn.h"

#include <algorithm>
#include <cerrno>
#include <initializer_list>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tutti::tools {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

// The code of `Child` runs between fork and exec. It must not allocate memory or lock a mutex,
// since both are unsafe there if the parent has other threads.
struct Child {
  const char* path;
  char* const* arguments;
  char* const* environment;
  int descriptors[3];
  const ProcessorSet& processors;
  int failure;  // the pipe to which the errno is written if exec fails
  pid_t parent;
  const SpawnDefaults& defaults;

  [[noreturn]] void run() const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    // The ranks of a host stay in one session. Linux may schedule each session as a separate unit
    // (sched_autogroup). If each rank had its own session, a rank could not yield the processor to another
    // rank.
    setpgid(0, 0);
    if (connect_descriptors() && reset_signals() && use_processors()) {
      setrlimit(RLIMIT_NOFILE, &defaults.open_files);
      execve(path, arguments, environment);
    }
    const int problem = errno;
    if (write(failure, &problem, sizeof problem) < 0) _exit(2);
    _exit(1);
  }

  bool connect_descriptors() const {
    for (int target = 0; target < 3; ++target) {
      if (dup2(descriptors[target], target) < 0) return false;
    }
    return true;
  }

  bool use_processors() const {
    return !processors || sched_setaffinity(0, sizeof *processors, &*processors) == 0;
  }

  // Restores the default action of each signal that the parent handles. Otherwise a handler could
  // run in the child before exec. Signals that the parent ignored from its start stay ignored.
  bool reset_signals() const {
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction action;
      if (sigaction(signal, nullptr, &action) != 0) continue;
      if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) continue;
      action = {};
      action.sa_handler = SIG_DFL;
      sigaction(signal, &action, nullptr);
    }
    sigaction(SIGPIPE, &defaults.broken_pipe, nullptr);
    sigaction(SIGXFSZ, &defaults.file_too_large, nullptr);
    return sigprocmask(SIG_SETMASK, &defaults.mask, nullptr) == 0;
  }
};

// Returns the errno that the child reports. Returns 0 if exec succeeded: exec then closes the
// child's end of the pipe.
int read_failure(int fd) {
  int problem = 0;
  ssize_t bytes;
  do {
    bytes = read(fd, &problem, sizeof problem);
  } while (bytes < 0 && errno == EINTR);
  return bytes == sizeof problem ? problem : 0;
}

// Returns 0, or the reason (errno) why the file cannot be executed.
int check_executable(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return errno == ENOTDIR ? ENOENT : errno;
  if (S_ISDIR(status.st_mode) || access(path.c_str(), X_OK) != 0) return EACCES;
  return 0;
}

}  // namespace

SpawnDefaults SpawnDefaults::of_this_process() {
  SpawnDefaults result = {};
  sigprocmask(SIG_SETMASK, nullptr, &result.mask);
  sigaction(SIGPIPE, nullptr, &result.broken_pipe);
  sigaction(SIGXFSZ, nullptr, &result.file_too_large);
  getrlimit(RLIMIT_NOFILE, &result.open_files);
  return result;
}

pid_t spawn(const SpawnRequest& request, const SpawnDefaults& defaults) {
  const std::vector<char*> arguments = pointers(request.arguments);
  const std::vector<char*> environment = pointers(request.environment);
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) return -errno;
  const Child child{request.path.c_str(),
                    arguments.data(),
                    environment.data(),
                    {request.input, request.output, request.error},
                    request.processors,
                    failure[1],
                    getpid(),
                    defaults};

  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  const pid_t pid = fork();
  if (pid == 0) child.run();
  const int fork_problem = errno;
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);

  close(failure[1]);
  const int problem = pid < 0 ? fork_problem : read_failure(failure[0]);
  close(failure[0]);
  if (problem == 0) return pid;
  if (pid > 0) waitpid(pid, nullptr, 0);
  return -problem;
}

bool open_pipe(Descriptor& ours, Descriptor& theirs) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  ours = Descriptor(ends[0]);
  theirs = Descriptor(ends[1]);
  return fcntl(ours.get(), F_SETFL, O_NONBLOCK) == 0;
}

Descriptor process_descriptor(pid_t pid) {
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

std::string search_path_of(const Environment& environment) {
  const auto path = environment.find("PATH");
  return path == environment.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second;
}

FoundProgram find_program(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) return {name, check_executable(name)};
  FoundProgram best{"", ENOENT};
  const std::string folders = path + ":.";
  for (std::size_t begin = 0; begin < folders.size() && !name.empty();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    const FoundProgram found = {candidate, check_executable(candidate)};
    if (found.problem == 0) return found;
    if (found.problem == EACCES && best.problem == ENOENT) best = found;
    begin = end + 1;
  }
  return best;
}

}  // namespace tutti::tools
