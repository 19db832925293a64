#include "core/control_groups.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <ranges>
#include <string_view>

#include <tutti/config_values.h>

namespace tutti {
namespace {

struct Membership {
  std::string controllers;  // such as "cpu,cpuacct"; empty for v2
  std::string group;
};

// Parses a line such as "4:memory:/jobs/17".
std::optional<Membership> parse(const std::string& line) {
  const std::size_t first = line.find(':'), second = line.find(':', first + 1);
  if (first == line.npos || second == line.npos || line.compare(second + 1, 1, "/") != 0) return std::nullopt;
  return Membership{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

}  // namespace

std::vector<ControlGroup> control_groups(const std::string& controller, const std::string& root) {
  std::vector<ControlGroup> result;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    auto in = parse(line);
    if (!in) continue;
    const bool unified = in->controllers.empty();
    if (!unified && std::ranges::count(parse_list(in->controllers), controller) == 0) continue;
    const std::string mount = root + "/sys/fs/cgroup" + (unified ? "" : "/" + controller);
    for (std::string group = in->group;; group.resize(group.rfind('/'))) {
      result.push_back({mount + group, unified});
      if (group.empty() || group == "/") break;
    }
  }
  return result;
}

}  // namespace tutti
