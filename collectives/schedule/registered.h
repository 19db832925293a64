#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/schedule/problem.h"

namespace tutti {

// A `Place` is the position of a rank's buffer in memory that the group has registered.
// `allocation` counts from 1; it is 0 if the buffer is not registered. `offset` counts from the
// start of that rank's part of the allocation.
struct Place {
  std::uint64_t allocation = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A `Registry` knows the memory that all ranks of a group can read and write (`Communicator::allocate`).
class Registry {
 public:
  virtual ~Registry() = default;
  // Returns the place of the `bytes` bytes of this rank's memory that begin at `data`. If they are not
  // registered, the allocation of the place is 0.
  virtual Place find(const void* data, std::uint64_t bytes) const = 0;
  // Returns the address at which this process sees a place of `rank`; null if there is no such place.
  virtual std::byte* resolve(int rank, const Place& place) const = 0;
};

// In the registered form of a collective, ranks read and write each other's registered buffers in place.
// `Reach` says which buffers of a rank the other ranks access.
struct Reach {
  bool input = false;
  bool output = false;
};
Reach reach(CollectiveKind kind, int root, int rank);

// Returns whether the collective has a registered form. This depends only on values that all ranks know. If
// it has one, all ranks vote on whether to use it.
bool has_registered_form(const Problem& problem);

}  // namespace tutti
