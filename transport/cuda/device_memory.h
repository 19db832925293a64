#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <tutti/status.h>

#include "transport/allocated_memory.h"
#include "transport/cuda/api.h"
#include "transport/cuda/device.h"
#include "transport/registered_memory.h"

namespace tutti::cuda {

// An `Allocator` allocates memory of the current device in place of the driver. Its functions return 0 on
// success.
struct Allocator {
  int (*allocate)(void** memory, std::size_t bytes) = nullptr;
  int (*free)(void* memory) = nullptr;
};

// `DeviceMemory` is memory of a device. It keeps the device's context alive.
class DeviceMemory final : public AllocatedMemory {
 public:
  // Allocates zeroed memory, and waits for the device. The memory comes from `preferred`, or from the driver
  // if `preferred` is empty or fails. Fails with `resource_exhausted` if the device has no memory left.
  static Result<std::unique_ptr<DeviceMemory>> allocate(const Api& api, int device, std::size_t bytes,
                                                        const Allocator& preferred = {});
  ~DeviceMemory() override;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* data() const override { return static_cast<std::byte*>(data_); }
  bool registered() const override { return registration_ != nullptr; }
  // Keeps the memory registered as long as it exists.
  void keep(std::unique_ptr<RegisteredMemory> registration) { registration_ = std::move(registration); }

 private:
  explicit DeviceMemory(std::unique_ptr<Device> device) : device_(std::move(device)) {}
  // Sets all bytes to zero. The device must be `Current`.
  Status clear(std::size_t bytes);

  const std::unique_ptr<Device> device_;
  void* data_ = nullptr;
  int (*free_)(void* memory) = nullptr;  // null: the driver has allocated the memory
  std::unique_ptr<RegisteredMemory> registration_;
};

}  // namespace tutti::cuda
