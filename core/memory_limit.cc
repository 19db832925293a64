#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>

#include <sys/stat.h>

#include <tutti/core/memory_limit.h>

namespace tutti {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

// "MemTotal:       24683476 kB"
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

// "max" is no number.
std::uint64_t read_limit(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t limit = 0;
  return file >> limit ? limit : unlimited;
}

// Of a group and of those that it is in. In a container the path may be the host's, which is not to be seen
// there: then its root is the container's group.
std::uint64_t group_limit(const std::string& mount, std::string group, const std::string& name) {
  std::uint64_t least = unlimited;
  for (;;) {
    least = std::min(least, read_limit(mount + group + "/" + name));
    if (group.empty() || group == "/") return least;
    group.resize(group.rfind('/'));
  }
}

// Without it groups of the same name may be different ones.
std::uint64_t namespace_of(const std::string& root) {
  struct stat info {};
  return stat((root + "/proc/self/ns/cgroup").c_str(), &info) == 0 ? info.st_ino : 0;
}

struct Membership {
  std::string controllers;  // v2: empty
  std::string group;
};

// "4:memory:/jobs/17"
std::optional<Membership> parse(const std::string& line) {
  const std::size_t first = line.find(':'), second = line.find(':', first + 1);
  if (first == line.npos || second == line.npos || line.compare(second + 1, 1, "/") != 0) return std::nullopt;
  return Membership{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

}  // namespace

MemoryLimits memory_limits(const std::string& root) {
  MemoryLimits limits{machine_memory(root), unlimited, namespace_of(root)};
  std::ifstream file(root + "/proc/self/cgroup");
  const std::string mount = root + "/sys/fs/cgroup";
  for (std::string line; std::getline(file, line);) {
    limits.group_id = limits.group_id * 31 + std::hash<std::string>()(line);
    const auto in = parse(line);
    if (!in) continue;
    if (in->controllers.empty())
      limits.group = std::min(limits.group, group_limit(mount, in->group, "memory.max"));
    if (in->controllers == "memory")
      limits.group =
          std::min(limits.group, group_limit(mount + "/memory", in->group, "memory.limit_in_bytes"));
  }
  return limits;
}

}  // namespace tutti
