#include "tests/unit/rendezvous/freed_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

#include <malloc.h>

namespace {

constexpr std::size_t most = 5;
std::array<std::span<const std::byte>, most> secrets;
std::atomic<std::size_t> count{0}, found{0};

void release(void* memory) {
  const std::span bytes(static_cast<const std::byte*>(memory), malloc_usable_size(memory));
  for (std::size_t i = 0; i < count; ++i) {
    const auto place = std::search(bytes.begin(), bytes.end(), secrets[i].begin(), secrets[i].end());
    found += place == bytes.end() ? 0 : 1;
  }
  std::free(memory);
}

}  // namespace

void tutti::test::look_for(std::span<const std::byte> secret) {
  secrets[count] = secret;
  ++count;
}

std::size_t tutti::test::found_in_freed_memory() { return found.exchange(0); }

void* operator new(std::size_t bytes) {
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
