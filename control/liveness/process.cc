#include "control/liveness/process.h"

#include <fstream>
#include <sstream>
#include <string>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tutti::liveness {
namespace {

// Returns field 22 of /proc/PID/stat, or 0 if it is unknown. Field 2 is a name in parentheses that may
// contain anything, so fields are counted from the last parenthesis.
std::uint64_t start_time(const std::string& process) {
  std::string text;
  std::getline(std::ifstream("/proc/" + process + "/stat"), text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == text.npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  std::uint64_t ticks = 0;
  return fields >> ticks ? ticks : 0;
}

std::uint64_t own_namespace() {
  struct stat info = {};
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

}  // namespace

ProcessIdentity own_identity() { return {own_namespace(), start_time("self")}; }

Descriptor watch_process(pid_t pid, const ProcessIdentity& identity) {
  if (identity.start_time == 0 || identity.pid_namespace == 0) return {};
  if (identity.pid_namespace != own_namespace()) return {};
  Descriptor process = Descriptor::guarded(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // The start time must be compared after the descriptor is opened. An open descriptor stands for one
  // process, even if the kernel gives the PID to another process later.
  if (process && start_time(std::to_string(pid)) != identity.start_time) process.reset();
  return process;
}

}  // namespace tutti::liveness
