#include "tools/run/job_processes.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <tutti/deadline.h>

#include "tools/run/descendants.h"

namespace tutti::tools {
namespace {

constexpr std::chrono::seconds time_to_end{5};
constexpr std::chrono::milliseconds look_again{10};

// Returns the strings of a file in /proc, where each string ends with a zero byte. The result is
// empty if the file cannot be read, for example because the process has ended.
std::vector<std::string> strings_in(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> result;
  for (std::string text; std::getline(file, text, '\0');) result.push_back(text);
  return result;
}

ino_t network_namespace_of(const std::string& process) {
  struct stat status;
  return stat((process + "/ns/net").c_str(), &status) == 0 ? status.st_ino : 0;
}

bool is_agent_of(const std::string& job, const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1] != "agent") return false;
  const auto option = std::ranges::find(words, "--job");
  return option != words.end() && std::next(option) != words.end() && *std::next(option) == job;
}

bool is_of_job(const std::string& job, const std::string& process) {
  struct stat status;
  if (stat(process.c_str(), &status) != 0 || status.st_uid != geteuid()) return false;
  if (network_namespace_of(process) != network_namespace_of("/proc/self")) return false;
  const std::vector<std::string> variables = strings_in(process + "/environ");
  return std::ranges::find(variables, "TUTTI_JOB_ID=" + job) != variables.end() ||
         is_agent_of(job, strings_in(process + "/cmdline"));
}

}  // namespace

bool end_processes_of(const std::string& job) {
  const Deadline deadline = Deadline::after(time_to_end);
  for (;;) {
    bool found = false;
    for (const pid_t pid : living_processes()) {
      if (pid == getpid() || !is_of_job(job, "/proc/" + std::to_string(pid))) continue;
      found = true;
      kill(pid, SIGKILL);
    }
    if (!found || deadline.expired()) return !found;
    std::this_thread::sleep_for(look_again);
  }
}

}  // namespace tutti::tools
