#pragma once

#include <cstdint>

#include <sys/types.h>

#include "core/descriptor.h"

namespace tutti::liveness {

// A `ProcessIdentity` and a PID together distinguish a process from all others that this kernel has ever run.
// A PID alone is valid only within its PID namespace. A later process may get the same PID, but not with the
// same start time.
struct ProcessIdentity {
  std::uint64_t pid_namespace = 0;  // inode; 0 if unknown
  std::uint64_t start_time = 0;     // in ticks since boot; 0 if unknown
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

ProcessIdentity own_identity();

// Returns a descriptor that becomes readable when the process with this `pid` and `identity` has ended.
// Returns an empty descriptor if the process is gone, or if `pid` might mean another process here. The caller
// must have checked that the process runs on this host, in its current boot.
Descriptor watch_process(pid_t pid, const ProcessIdentity& identity);

}  // namespace tutti::liveness
