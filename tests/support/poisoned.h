#pragma once

#include <cstddef>
#include <span>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tutti::test {

// A `Poisoned` makes AddressSanitizer report every access to its memory while the object exists. It has no
// effect without AddressSanitizer.
class Poisoned {
 public:
  explicit Poisoned(std::span<const std::byte> memory) : memory_(memory) {
#if defined(__SANITIZE_ADDRESS__)
    ASAN_POISON_MEMORY_REGION(memory_.data(), memory_.size());
#endif
  }
  ~Poisoned() {
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(memory_.data(), memory_.size());
#endif
  }
  Poisoned(const Poisoned&) = delete;
  Poisoned& operator=(const Poisoned&) = delete;

 private:
  const std::span<const std::byte> memory_;
};

}  // namespace tutti::test
