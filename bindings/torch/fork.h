#pragma once

#include <atomic>
#include <cstdint>

namespace tutti_torch {

// Counts the forks that lie between the first program and this process, from when the extension was loaded.
extern std::atomic<std::uint32_t> forks_so_far;

// Tells whether an object that holds one as a member was made by a parent of this process. A thread that does
// not exist here may hold such an object's locks, so nothing of it may be locked, and what it owns is left
// alone.
class Birth {
 public:
  bool forked_since() const { return born_ != forks_so_far.load(std::memory_order_relaxed); }
  // Throws if it was.
  void check() const;

 private:
  std::uint32_t born_ = forks_so_far.load(std::memory_order_relaxed);
};

// `in_child` runs in each child, before anything else of it does.
void count_forks(void (*in_child)());

}  // namespace tutti_torch
