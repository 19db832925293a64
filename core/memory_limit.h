#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace tutti {

// `MemoryLimits` says how much memory this process can ever have. A process can allocate more than that, but
// the kernel kills processes once they use more.
struct MemoryLimits {
  std::uint64_t machine = 0;   // memory and swap of the machine
  std::uint64_t group = 0;     // limit of the control groups (v1 or v2) that the process is in
  std::uint64_t group_id = 0;  // equal for two processes of this machine that are in the same groups

  std::uint64_t least() const { return std::min(machine, group); }
};

// Returns the limits. A limit that is not known counts as unlimited. `root` is the folder that holds /proc
// and /sys. Only tests pass it.
MemoryLimits memory_limits(const std::string& root = "");

// Returns how many bytes of shared memory this process may map now and touch later. This is the least of
// three values. The first is half of the memory that the process can ever have. The second is a quarter of
// its unused address space (RLIMIT_AS). The third is a quarter of the largest file that it may write
// (RLIMIT_FSIZE). The result is zero if the kernel does not overcommit memory (vm.overcommit_memory=2). In
// this mode the kernel may have no memory left for a page that is touched for the first time, and would then
// kill the process.
std::uint64_t lazy_memory(const std::string& root = "");

}  // namespace tutti
