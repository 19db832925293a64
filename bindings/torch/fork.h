#pragma once

#include <cstdint>

namespace tutti_torch {

// A `Birth` is a member of an object, and tells whether a parent of this process made the object. A thread
// that does not exist here may hold such an object's locks, so none of them may be taken, and what it owns is
// left alone.
//
// The library counts forks, too, but the C interface does not show its count. A binding must keep a child
// from taking its locks and so needs to notice forks anyway (`count_forks`).
class Birth {
 public:
  Birth();
  bool forked_since() const;
  // Throws if `forked_since`.
  void check() const;

 private:
  std::uint32_t born_;
};

// Counts forks from now on; `in_child` runs in each child before any other code of it.
void count_forks(void (*in_child)());

}  // namespace tutti_torch
