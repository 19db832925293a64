#include "tools/run/binding.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>

#include <tutti/config_values.h>

namespace tutti::tools {
namespace {

constexpr std::string_view system_folder = "/sys/devices/system/";

bool has(const cpu_set_t& set, int number) { return CPU_ISSET(static_cast<std::size_t>(number), &set); }

// Reads a list of numbers in the kernel's form, "0-3,8". Returns nothing if the file is missing or has
// another form.
std::optional<cpu_set_t> read_list(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  cpu_set_t result;
  CPU_ZERO(&result);
  for (const std::string& item : parse_list(line)) {
    const std::size_t dash = std::min(item.find('-'), item.size());
    const std::optional<std::int64_t> first = parse_integer(item.substr(0, dash));
    const std::optional<std::int64_t> last =
        dash == item.size() ? first : parse_integer(item.substr(dash + 1));
    if (!first || !last || *first < 0 || *last >= CPU_SETSIZE) return std::nullopt;
    for (std::int64_t number = *first; number <= *last; ++number) {
      CPU_SET(static_cast<std::size_t>(number), &result);
    }
  }
  return result;
}

// Returns the cores in the order of their first processors. Each holds only its processors in `usable`.
std::vector<cpu_set_t> cores_among(cpu_set_t usable, const std::string& folder) {
  std::vector<cpu_set_t> cores;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (!has(usable, number)) continue;
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(static_cast<std::size_t>(number), &core);
    const std::string topology = folder + "cpu/cpu" + std::to_string(number) + "/topology/";
    if (const std::optional<cpu_set_t> threads = read_list(topology + "thread_siblings_list")) {
      CPU_OR(&core, &core, &*threads);
    }
    CPU_AND(&core, &core, &usable);
    CPU_XOR(&usable, &usable, &core);
    cores.push_back(core);
  }
  return cores;
}

// Returns the NUMA nodes that have processors in `usable`. Each holds only those.
std::vector<cpu_set_t> nodes_among(const cpu_set_t& usable, const std::string& folder) {
  std::vector<cpu_set_t> nodes;
  cpu_set_t online;
  CPU_ZERO(&online);
  online = read_list(folder + "node/online").value_or(online);
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (!has(online, number)) continue;
    std::optional<cpu_set_t> node = read_list(folder + "node/node" + std::to_string(number) + "/cpulist");
    if (!node) continue;
    CPU_AND(&*node, &*node, &usable);
    if (CPU_COUNT(&*node) > 0) nodes.push_back(*node);
  }
  if (nodes.empty()) nodes.push_back(usable);
  return nodes;
}

}  // namespace

Result<std::vector<cpu_set_t>> divide_processors(Binding binding, int local_ranks, const cpu_set_t& usable,
                                                 const std::string& root) {
  const auto ranks = static_cast<std::size_t>(local_ranks);
  if (binding == Binding::none) return std::vector<cpu_set_t>(ranks, usable);
  const std::string folder = root + std::string(system_folder);
  const std::vector<cpu_set_t> parts =
      binding == Binding::core ? cores_among(usable, folder) : nodes_among(usable, folder);
  if (binding == Binding::core && parts.size() < ranks) {
    return Status(Code::invalid_argument, "--bind-to core: " + std::to_string(ranks) +
                                              " ranks need as many cores, and only " +
                                              std::to_string(parts.size()) + " may be used");
  }
  std::vector<cpu_set_t> result;
  for (std::size_t rank = 0; rank < ranks; ++rank) result.push_back(parts[rank % parts.size()]);
  return result;
}

}  // namespace tutti::tools
