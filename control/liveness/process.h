#pragma once

#include <cstdint>

#include <sys/types.h>

#include "core/descriptor.h"

namespace tutti::liveness {

// `ProcessIdentity` tells a process from any other that this kernel has ever run. A process id is only valid
// within its namespace and may be reused, but not for a process that started at the same tick.
struct ProcessIdentity {
  std::uint64_t pid_namespace = 0;  // inode; 0: unknown
  std::uint64_t start_time = 0;     // ticks since boot
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

ProcessIdentity own_identity();

// Returns a descriptor that becomes readable when this very process has ended, or none if it is not certain
// that `pid` is that process here. The caller has checked that both are on the same boot of the same host.
Descriptor watch_process(pid_t pid, const ProcessIdentity& identity);

}  // namespace tutti::liveness
