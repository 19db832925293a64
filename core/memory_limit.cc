#include "core/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/control_groups.h"

namespace tutti {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

// Sums memory and swap, from lines such as "MemTotal:       24683476 kB".
std::uint64_t machine_memory(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::uint64_t sum = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kilobytes = 0;
    if (words >> name >> kilobytes && (name == "MemTotal:" || name == "SwapTotal:")) sum += kilobytes * 1024;
  }
  return sum == 0 ? unlimited : sum;
}

// Returns the limit in a file. The text "max", which is not a number, means no limit.
std::uint64_t read_limit(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t limit = 0;
  return file >> limit ? limit : unlimited;
}

std::uint64_t resource_limit(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  const bool known = getrlimit(resource, &limit) == 0;
  return known && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : unlimited;
}

// Returns the number of this process's namespace of control groups. Two processes with equal group names are
// in the same group only if they are in the same namespace.
std::uint64_t namespace_of(const std::string& root) {
  struct stat info {};
  return stat((root + "/proc/self/ns/cgroup").c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

MemoryLimits memory_limits(const std::string& root) {
  MemoryLimits limits{machine_memory(root), unlimited, namespace_of(root)};
  for (const ControlGroup& group : control_groups("memory", root)) {
    const char* name = group.unified ? "/memory.max" : "/memory.limit_in_bytes";
    limits.group = std::min(limits.group, read_limit(group.folder + name));
  }
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    limits.group_id = limits.group_id * 31 + std::hash<std::string>()(line);
  }
  return limits;
}

std::uint64_t lazy_memory(const std::string& root) {
  if (read_limit(root + "/proc/sys/vm/overcommit_memory") == 2) return 0;
  std::uint64_t pages_used = 0;
  std::ifstream(root + "/proc/self/statm") >> pages_used;
  const std::uint64_t used = pages_used * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t space = resource_limit(RLIMIT_AS);
  const std::uint64_t unused = space > used ? space - used : 0;
  return std::min({memory_limits(root).least() / 2, unused / 4, resource_limit(RLIMIT_FSIZE) / 4});
}

}  // namespace tutti
