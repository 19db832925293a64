#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace tutti {

// `MemoryLimits` is the largest amount of memory that this process can ever have. The kernel does not refuse
// a request for more, but kills processes once the memory is used.
struct MemoryLimits {
  std::uint64_t machine = 0;   // its memory and swap
  std::uint64_t group = 0;     // the memory limit of the process's control groups (v1 or v2)
  std::uint64_t group_id = 0;  // equal for processes of this machine that are in the same groups

  std::uint64_t least() const { return std::min(machine, group); }
};

// A limit that is not known does not limit anything. `root`: where the system's files are found.
MemoryLimits memory_limits(const std::string& root = "");

}  // namespace tutti
