#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace tutti {

// `FreeDelete` frees memory that `std::aligned_alloc` has returned.
struct FreeDelete {
  void operator()(void* memory) const { std::free(memory); }
};

using AlignedBytes = std::unique_ptr<std::byte[], FreeDelete>;

// Allocates at least `bytes` bytes, at an address that is a multiple of `alignment`. Returns null if memory
// has run out.
inline AlignedBytes aligned_bytes(std::size_t alignment, std::size_t bytes) {
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return AlignedBytes(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
}

}  // namespace tutti
