#pragma once

#include <cstdint>

#include <sys/types.h>

#include "core/descriptor.h"

namespace tutti::liveness {

// A `ProcessIdentity` distinguishes a process from any other that this kernel has ever run. A process's
// number is valid only within a namespace, and another process may get it later, but not at the same tick.
struct ProcessIdentity {
  std::uint64_t pid_namespace = 0;  // inode; 0 if unknown
  std::uint64_t start_time = 0;     // in ticks since boot; 0 if unknown
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

ProcessIdentity own_identity();

// Returns a descriptor that becomes readable when that very process of this host has ended. Returns none if
// there is no proof that `pid` means that process here. The caller must have checked that it is the same boot
// of the same host.
Descriptor watch_process(pid_t pid, const ProcessIdentity& identity);

}  // namespace tutti::liveness
