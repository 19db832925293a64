#include "tests/support/fake_cuda_memory.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include <sys/mman.h>
#include <unistd.h>

namespace tutti::test {

namespace {

constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

// The memory has two mappings. The first mapping has the device's address, and cannot be accessed.
// The fake itself uses the second mapping.
std::uint64_t FakeMemory::allocate(std::size_t bytes, int device) {
  const std::size_t length = whole_pages(bytes);
  const int file = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (file < 0) return 0;
  void* outside = MAP_FAILED;
  void* inside = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(length)) == 0) {
    outside = mmap(nullptr, length, PROT_NONE, MAP_SHARED, file, 0);
    inside = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (outside != MAP_FAILED && inside != MAP_FAILED) {
    std::memset(inside, 0xa5, bytes);  // a device does not clear memory
    const std::lock_guard lock(mutex_);
    const auto address = std::bit_cast<std::uint64_t>(outside);
    device_[address] = {bytes, static_cast<std::byte*>(inside), device};
    return address;
  }
  if (outside != MAP_FAILED) munmap(outside, length);
  if (inside != MAP_FAILED) munmap(inside, length);
  return 0;
}

bool FakeMemory::free(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto block = device_.find(address);
  if (block == device_.end()) return false;
  munmap(std::bit_cast<void*>(address), whole_pages(block->second.bytes));
  munmap(block->second.view, whole_pages(block->second.bytes));
  device_.erase(block);
  return true;
}

void* FakeMemory::pin(std::size_t bytes) {
  void* const memory = std::aligned_alloc(page, whole_pages(bytes));
  if (memory == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  pinned_[std::bit_cast<std::uint64_t>(memory)] = {bytes, static_cast<std::byte*>(memory)};
  return memory;
}

bool FakeMemory::unpin(void* memory) {
  const std::lock_guard lock(mutex_);
  if (pinned_.erase(std::bit_cast<std::uint64_t>(memory)) == 0) return false;
  std::free(memory);
  return true;
}

std::byte* FakeMemory::view(std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto block = find(device_, address);
  if (block == device_.end()) return std::bit_cast<std::byte*>(address);
  const std::uint64_t offset = address - block->first;
  return block->second.bytes - offset < bytes ? nullptr : block->second.view + offset;
}

bool FakeMemory::is_of_device(std::uint64_t address) { return device_of(address) >= 0; }

int FakeMemory::device_of(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto block = find(device_, address);
  return block == device_.end() ? -1 : block->second.device;
}

bool FakeMemory::is_pinned(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  return find(pinned_, address) != pinned_.end();
}

std::size_t FakeMemory::device_bytes() {
  const std::lock_guard lock(mutex_);
  return sum(device_);
}

std::size_t FakeMemory::pinned_bytes() {
  const std::lock_guard lock(mutex_);
  return sum(pinned_);
}

FakeMemory::Blocks::const_iterator FakeMemory::find(const Blocks& blocks, std::uint64_t address) {
  const auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return blocks.end();
  const auto block = std::prev(after);
  return address - block->first < block->second.bytes ? block : blocks.end();
}

std::size_t FakeMemory::sum(const Blocks& blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), std::size_t{0},
                         [](std::size_t sum, const auto& block) { return sum + block.second.bytes; });
}

}  // namespace tutti::test
