#pragma once

#include <cstdint>

namespace tutti_torch {

// A `Birth` is a member of an object, and tells whether a parent of this process made the object. A thread
// that does not exist in this process may hold such an object's locks, so none of them may be taken, and its
// members must not be touched.
//
// The library has a similar count, which the C interface does not offer. The binding must handle forks anyway
// to protect its own locks (`count_forks`), so it counts them there.
class Birth {
 public:
  Birth();
  bool forked_since() const;
  // Throws if `forked_since` is true.
  void check() const;

 private:
  std::uint32_t born_;
};

// Counts forks from now on. `in_child` runs in each child before any other code does.
void count_forks(void (*in_child)());

}  // namespace tutti_torch
