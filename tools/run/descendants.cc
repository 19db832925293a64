#include "tools/run/descendants.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tutti::tools {
namespace {

struct ProcessState {
  char state = 'X';
  pid_t parent = 0;
};

// Reads the state and the parent from /proc/PID/stat. The file holds "PID (name) state parent ...".
// The name may contain any characters, even parentheses.
ProcessState state_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text, '\0');
  const std::size_t end_of_name = text.rfind(')');
  ProcessState result;
  if (end_of_name == std::string::npos || end_of_name + 4 > text.size()) return result;
  result.state = text[end_of_name + 2];
  result.parent = static_cast<pid_t>(std::strtol(text.c_str() + end_of_name + 3, nullptr, 10));
  return result;
}

template <typename Predicate>
std::vector<pid_t> processes_that(const Predicate& predicate) {
  std::vector<pid_t> result;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc"), closedir);
  if (directory == nullptr) return result;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string name = entry->d_name;
    if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) continue;
    const ProcessState process = state_of(name);
    if (process.state != 'Z' && process.state != 'X' && predicate(process)) {
      result.push_back(static_cast<pid_t>(std::stol(name)));
    }
  }
  return result;
}

}  // namespace

void adopt_orphans() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    throw std::system_error(errno, std::generic_category(), "prctl(PR_SET_CHILD_SUBREAPER)");
  }
}

std::vector<pid_t> living_processes() {
  return processes_that([](const ProcessState&) { return true; });
}

std::vector<pid_t> living_children() {
  return processes_that([self = getpid()](const ProcessState& process) { return process.parent == self; });
}

void kill_all_children() {
  for (;;) {
    for (const pid_t child : living_children()) kill(child, SIGKILL);
    // The children of a child become children of this process before `waitpid` returns, so the next iteration
    // finds them.
    const pid_t ended = waitpid(-1, nullptr, 0);
    if (ended < 0 && errno == ECHILD) return;
  }
}

}  // namespace tutti::tools
