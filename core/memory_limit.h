#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace tutti {

// `MemoryLimits` says how much memory this process can ever have. Asking the kernel for more does not fail,
// but the kernel kills processes once it is used.
struct MemoryLimits {
  std::uint64_t machine = 0;   // memory and swap of the machine
  std::uint64_t group = 0;     // limit of the control groups (v1 or v2) that the process is in
  std::uint64_t group_id = 0;  // equal for processes of this machine in the same groups

  std::uint64_t least() const { return std::min(machine, group); }
};

// Returns the limits; one that is not known does not limit anything. `root` is the folder that has the
// system's files.
MemoryLimits memory_limits(const std::string& root = "");

}  // namespace tutti
