#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace tutti {

// An `Arena` hands out parts of a stretch of memory. It never touches the memory, and only keeps track of
// offsets. A part is taken from the first hole that is large enough (first fit; Knuth, The Art of Computer
// Programming, volume 1, section 2.5).
class Arena {
 public:
  Arena() = default;
  Arena(std::uint64_t begin, std::uint64_t bytes) {
    if (bytes != 0) holes_.emplace(begin, bytes);
  }

  // Returns the offset of a part of `bytes` bytes, or nothing if there is no hole of that size.
  std::optional<std::uint64_t> take(std::uint64_t bytes);
  // Gives back a part that `take` has returned.
  void give_back(std::uint64_t offset, std::uint64_t bytes);
  // Returns the size in bytes of the largest part that can be taken.
  std::uint64_t largest() const;

 private:
  std::map<std::uint64_t, std::uint64_t> holes_;  // offset -> bytes; no two holes touch
};

}  // namespace tutti
