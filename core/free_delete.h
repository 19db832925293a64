#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace tutti {

// `FreeDelete` gives memory of `std::aligned_alloc` back.
struct FreeDelete {
  void operator()(void* memory) const { std::free(memory); }
};

using AlignedBytes = std::unique_ptr<std::byte[], FreeDelete>;

// Allocates at least that many bytes, at an address that is a multiple of `alignment`; null if there is no
// memory.
inline AlignedBytes aligned_bytes(std::size_t alignment, std::size_t bytes) {
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return AlignedBytes(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
}

}  // namespace tutti
