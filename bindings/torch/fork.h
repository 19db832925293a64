#pragma once

#include <cstdint>

namespace tutti_torch {

// A `Birth` is a member of an object. It tells whether this process or a parent made the object. A
// parent's thread, which does not exist in this process, may hold the locks of a parent's object.
// So this process must not take those locks or touch the object's members.
//
// The library counts forks as well, but the C interface does not offer that count. The binding must handle
// forks anyway to protect its own locks, so it counts them in the same handler (`count_forks`).
class Birth {
 public:
  Birth();
  bool forked_since() const;
  // Throws if `forked_since` is true.
  void check() const;

 private:
  std::uint32_t born_;
};

// Starts to count forks. `in_child` runs in each forked child before any other code.
void count_forks(void (*in_child)());

}  // namespace tutti_torch
