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
// and /sys; only tests pass one.
MemoryLimits memory_limits(const std::string& root = "");

// Returns how many bytes of shared memory this process may map now and touch later. This is the least of
// three values: half of the memory that it can ever have, a quarter of its unused address space (RLIMIT_AS),
// and a quarter of the largest file that it may write (RLIMIT_FSIZE). The result is zero if the kernel never
// promises more memory than it has (vm.overcommit_memory=2). In this mode the kernel has set aside no memory
// for pages that were never touched. So touching such a page for the first time could kill the process.
std::uint64_t lazy_memory(const std::string& root = "");

}  // namespace tutti
