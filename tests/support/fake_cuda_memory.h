#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace tutti::test {

// `FakeMemory` is the memory of the fake CUDA. Any thread may call its functions.
class FakeMemory {
 public:
  // Allocates memory of a device. Returns an address that no program can access, or 0 if the host's
  // memory is exhausted.
  std::uint64_t allocate(std::size_t bytes, int device);
  // Frees memory of a device. Returns false if no allocation begins at this address.
  bool free(std::uint64_t address);
  // Allocates memory of the host that a device can access. Returns null if the host's memory is
  // exhausted.
  void* pin(std::size_t bytes);
  bool unpin(void* memory);

  // Returns the address at which the fake can access some memory. `address` may belong to a device
  // or to the host. Returns null if only a part of the range is memory of a device.
  std::byte* view(std::uint64_t address, std::size_t bytes);
  bool is_of_device(std::uint64_t address);
  // Returns the device whose memory has this address, or -1.
  int device_of(std::uint64_t address);
  bool is_pinned(std::uint64_t address);
  std::size_t device_bytes();
  std::size_t pinned_bytes();

 private:
  struct Block {
    std::size_t bytes = 0;
    std::byte* view = nullptr;
    int device = -1;  // -1: the host
  };
  using Blocks = std::map<std::uint64_t, Block>;  // by address
  // Returns the block that contains an address, or the end.
  static Blocks::const_iterator find(const Blocks& blocks, std::uint64_t address);
  static std::size_t sum(const Blocks& blocks);

  std::mutex mutex_;
  Blocks device_;
  Blocks pinned_;
};

}  // namespace tutti::test
