#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/schedule/problem.h"

namespace tutti {

// A `Place` is the position of a buffer in memory that the group has registered: the allocation (counted from
// 1; 0: none), the offset from the start of its rank's part, and the length.
struct Place {
  std::uint64_t allocation = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A `Registry` knows the memory that all ranks of a group can read and write (`Communicator::allocate`).
class Registry {
 public:
  virtual ~Registry() = default;
  // Returns the place of these `bytes` bytes of this rank's memory.
  virtual Place find(const void* data, std::uint64_t bytes) const = 0;
  // Returns the address of a place of `rank` in this process; null if there is no such place.
  virtual std::byte* resolve(int rank, const Place& place) const = 0;
};

// Returns which of `rank`'s buffers other ranks read or write in the registered form of a collective.
struct Reach {
  bool input = false;
  bool output = false;
};
Reach reach(CollectiveKind kind, int root, int rank);

// Returns whether all ranks vote on a registered form. It is a function of values that all ranks know.
bool has_registered_form(const Problem& problem);

}  // namespace tutti
