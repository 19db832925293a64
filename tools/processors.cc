#include "tools/processors.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include <sched.h>
#include <unistd.h>

#include "core/control_groups.h"

namespace tutti::tools {
namespace {

int processors_by_affinity() {
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof processors, &processors) == 0) return CPU_COUNT(&processors);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

// Returns how many processors a control group may use on average, or nothing if it has no limit (its file
// says "max" or -1).
std::optional<double> share(const ControlGroup& group) {
  double quota = 0;
  double period = 0;
  if (group.unified) {
    std::ifstream(group.folder + "/cpu.max") >> quota >> period;
  } else {
    std::ifstream(group.folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(group.folder + "/cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace

int usable_processors(const std::string& root) {
  double processors = processors_by_affinity();
  for (const ControlGroup& group : control_groups("cpu", root)) {
    processors = std::min(processors, share(group).value_or(processors));
  }
  return std::max(1, static_cast<int>(processors));
}

}  // namespace tutti::tools
