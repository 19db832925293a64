#pragma once

#include <cstdint>

#include <sys/types.h>

#include "core/descriptor.h"

namespace tutti::liveness {

// `ProcessIdentity` tells a process from any other that this kernel has ever run. A process's number means
// something only within a namespace, and is given to another process one day, but not at the same tick.
struct ProcessIdentity {
  std::uint64_t pid_namespace = 0;  // inode; 0: unknown
  std::uint64_t start_time = 0;     // ticks since boot
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

ProcessIdentity own_identity();

// A descriptor that becomes readable when that very process of this host has ended; none if there is no proof
// that `pid` means that process here. The caller has made sure that it is the same boot of the same host.
Descriptor watch_process(pid_t pid, const ProcessIdentity& identity);

}  // namespace tutti::liveness
