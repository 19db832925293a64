#include "transport/cuda/device_memory.h"

#include <algorithm>
#include <bit>

namespace tutti::cuda {

// An allocator such as NCCL's does not say why it has failed. So this function then asks the driver for the
// memory. Either the driver has memory after all, or it gives the reason. The driver refuses to allocate zero
// bytes, so at least one byte is allocated.
Result<std::unique_ptr<DeviceMemory>> DeviceMemory::allocate(const Api& api, int number, std::size_t bytes,
                                                             const Allocator& preferred) {
  Result<std::unique_ptr<Device>> device = Device::open(api, number);
  if (!device.ok()) return device.status();
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(*std::move(device)));
  const Device::Current current(*memory->device_);
  const std::size_t length = std::max<std::size_t>(bytes, 1);
  if (preferred.allocate != nullptr && preferred.allocate(&memory->data_, length) == 0) {
    memory->free_ = preferred.free;
  } else {
    Address address = 0;
    if (const Outcome made = api.MemAlloc(&address, length); made != success)
      return status_of(api, made, "cuMemAlloc");
    memory->data_ = std::bit_cast<void*>(address);
  }
  if (Status cleared = memory->clear(length); !cleared.ok()) return cleared;
  return memory;
}

// Clears the memory in a separate stream, so that other streams can work meanwhile. The default stream would
// wait for the other streams, and could not be used while a stream is being captured.
Status DeviceMemory::clear(std::size_t bytes) {
  const Api& api = device_->api();
  const Result<std::unique_ptr<Stream>> stream = Stream::create(*device_);
  if (!stream.ok()) return stream.status();
  const auto address = std::bit_cast<Address>(data_);
  const Outcome begun = api.MemsetD8Async(address, 0, bytes, (*stream)->handle());
  if (begun != success) return status_of(api, begun, "cuMemsetD8Async");
  return status_of(api, api.StreamSynchronize((*stream)->handle()), "cuStreamSynchronize");
}

DeviceMemory::~DeviceMemory() {
  registration_.reset();
  if (data_ == nullptr) return;
  const Device::Current current(*device_);
  if (free_ != nullptr) {
    free_(data_);
  } else {
    device_->api().MemFree(std::bit_cast<Address>(data_));
  }
}

}  // namespace tutti::cuda
