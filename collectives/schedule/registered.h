#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/schedule/problem.h"

namespace tutti {

// A `Place` is the position of a buffer in memory that the group has registered: the allocation (counted from
// 1; 0: none), the offset from the start of the owner's part of this allocation, and the length.
struct Place {
  std::uint64_t allocation = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A `Registry` knows the memory that all ranks of a group can read and write (`Communicator::allocate`).
class Registry {
 public:
  virtual ~Registry() = default;
  // Returns the place of `bytes` bytes of this rank's memory from `data` on. Its allocation is 0 if they are
  // not registered.
  virtual Place find(const void* data, std::uint64_t bytes) const = 0;
  // Returns the address at which this process sees a place of `rank`; null if there is no such place.
  virtual std::byte* resolve(int rank, const Place& place) const = 0;
};

// `Reach` says which buffers of a rank other ranks read or write in the registered form of a collective.
struct Reach {
  bool input = false;
  bool output = false;
};
Reach reach(CollectiveKind kind, int root, int rank);

// Returns whether all ranks vote on a registered form. The result depends only on values that all ranks know.
bool has_registered_form(const Problem& problem);

}  // namespace tutti
