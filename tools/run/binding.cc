#include "tools/run/binding.h"

#include <cerrno>
#include <cstdint>
#include <fstream>

#include <tutti/config_values.h>

#include "core/error_text.h"

namespace tutti::tools {
namespace {

cpu_set_t no_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return set;
}

// Returns the numbers in the set, in ascending order.
std::vector<std::size_t> numbers_in(const cpu_set_t& set) {
  std::vector<std::size_t> numbers;
  for (std::size_t number = 0; number < CPU_SETSIZE; ++number) {
    if (CPU_ISSET(number, &set)) numbers.push_back(number);
  }
  return numbers;
}

// Reads a list of numbers in the kernel's format, "0-3,8". The set is empty if there is no such
// file. It omits numbers that do not fit into a set.
cpu_set_t read_list(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  cpu_set_t result = no_processors();
  for (const std::string& item : parse_list(line)) {
    const std::size_t dash = item.find('-');
    const auto first = parse_integer(item.substr(0, dash));
    const auto last = dash == item.npos ? first : parse_integer(item.substr(dash + 1));
    if (!first || !last || *first < 0) continue;
    for (std::int64_t number = *first; number <= *last && number < CPU_SETSIZE; ++number) {
      CPU_SET(static_cast<std::size_t>(number), &result);
    }
  }
  return result;
}

// Returns the cores in the order of their first processors. Each set holds only those processors of
// the core that are in `usable`.
std::vector<cpu_set_t> cores_among(cpu_set_t usable, const std::string& folder) {
  std::vector<cpu_set_t> cores;
  for (const std::size_t number : numbers_in(usable)) {
    if (!CPU_ISSET(number, &usable)) continue;  // an earlier core already has this processor
    const std::string topology = folder + "cpu/cpu" + std::to_string(number) + "/topology/";
    cpu_set_t core = read_list(topology + "thread_siblings_list");
    CPU_SET(number, &core);
    CPU_AND(&core, &core, &usable);
    CPU_XOR(&usable, &usable, &core);
    cores.push_back(core);
  }
  return cores;
}

// Returns the NUMA nodes that have processors in `usable`. Each set holds only those processors. If there is
// no such node, returns `usable` as the only set.
std::vector<cpu_set_t> nodes_among(const cpu_set_t& usable, const std::string& folder) {
  std::vector<cpu_set_t> nodes;
  for (const std::size_t number : numbers_in(read_list(folder + "node/online"))) {
    cpu_set_t node = read_list(folder + "node/node" + std::to_string(number) + "/cpulist");
    CPU_AND(&node, &node, &usable);
    if (CPU_COUNT(&node) > 0) nodes.push_back(node);
  }
  if (nodes.empty()) nodes.push_back(usable);
  return nodes;
}

}  // namespace

Result<std::vector<ProcessorSet>> divide_processors(Binding binding, int local_ranks) {
  cpu_set_t usable = no_processors();
  if (binding != Binding::none && sched_getaffinity(0, sizeof usable, &usable) != 0)
    return Status(Code::internal, "--bind-to: cannot find the usable processors: " + error_text(errno));
  return divide_processors(binding, local_ranks, usable, "");
}

Result<std::vector<ProcessorSet>> divide_processors(Binding binding, int local_ranks, const cpu_set_t& usable,
                                                    const std::string& root) {
  const auto ranks = static_cast<std::size_t>(local_ranks);
  std::vector<ProcessorSet> result(ranks);
  if (binding == Binding::none) return result;
  const std::string folder = root + "/sys/devices/system/";
  const std::vector<cpu_set_t> parts =
      binding == Binding::core ? cores_among(usable, folder) : nodes_among(usable, folder);
  if (binding == Binding::core && parts.size() < ranks) {
    return Status(Code::invalid_argument, "--bind-to core: " + std::to_string(ranks) +
                                              " ranks need as many cores, but may use only " +
                                              std::to_string(parts.size()));
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) result[rank] = parts[rank % parts.size()];
  return result;
}

}  // namespace tutti::tools
