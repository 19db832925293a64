#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <tutti/memory.h>

#include "transport/cuda/device.h"

namespace tutti::test {

// `DeviceMemory` is memory of a CUDA device, either a real device or the fake. Its functions throw
// `Error` if the driver reports an error.
class DeviceMemory {
 public:
  // Allocates memory on device number `device`, with the driver `api`.
  DeviceMemory(const cuda::Api& api, int device, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  const cuda::Device& device() const { return *device_; }
  // Returns the device's address of the memory, which the host must not access.
  std::byte* data() const;
  Memory memory() const { return Memory::cuda(device_->number()); }
  // `write` copies to the memory, and `read` copies from it. Both begin at the byte `offset`, and return
  // after the copy.
  void write(std::size_t offset, std::span<const std::byte> from) const;
  void read(std::size_t offset, std::span<std::byte> to) const;

 private:
  void copy(cuda::Address to, cuda::Address from, std::size_t bytes) const;

  const cuda::Api& api_;
  const std::unique_ptr<cuda::Device> device_;
  std::unique_ptr<cuda::Stream> stream_;
  cuda::Address address_ = 0;
};

// Returns how many devices the driver finds. Initializes the driver.
int count_devices(const cuda::Api& api);

}  // namespace tutti::test
