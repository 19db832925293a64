#include "tests/unit/collectives/counting_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> count{0};
void note() { count.fetch_add(1, std::memory_order_relaxed); }
}  // namespace

std::size_t tutti::test::allocations() { return count.load(); }

// The linker (--wrap) redirects calls of malloc and similar functions to __wrap_*. __real_* are the
// original functions.
extern "C" {
void* __real_malloc(std::size_t bytes);                                // NOLINT
void* __real_calloc(std::size_t items, std::size_t bytes);             // NOLINT
void* __real_realloc(void* memory, std::size_t bytes);                 // NOLINT
void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);  // NOLINT

void* __wrap_malloc(std::size_t bytes) {  // NOLINT
  note();
  return __real_malloc(bytes);
}
void* __wrap_calloc(std::size_t items, std::size_t bytes) {  // NOLINT
  note();
  return __real_calloc(items, bytes);
}
void* __wrap_realloc(void* memory, std::size_t bytes) {  // NOLINT
  note();
  return __real_realloc(memory, bytes);
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {  // NOLINT
  note();
  return __real_aligned_alloc(alignment, bytes);
}
}

// This file replaces all common forms of `new` and `delete`, so that none of them comes from a sanitizer.
// Otherwise the sanitizer would report memory that its `new` allocates and our `delete` frees.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes); }
void* operator new(std::size_t bytes) {
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return operator new(bytes, alignment); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
