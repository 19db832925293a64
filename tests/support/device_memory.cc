#include "tests/support/device_memory.h"

#include <bit>

namespace tutti::test {

namespace {

void check(const cuda::Api& api, cuda::Outcome outcome, const char* attempt) {
  if (const Status status = cuda::status_of(api, outcome, attempt); !status.ok()) throw Error(status);
}

}  // namespace

DeviceMemory::DeviceMemory(const cuda::Api& api, int device, std::size_t bytes)
    : api_(api), device_(cuda::Device::open(api, device).take()) {
  const cuda::Device::Current current(*device_);
  stream_ = cuda::Stream::create(*device_).take();
  check(api_, api_.MemAllocAsync(&address_, bytes, stream_->handle()), "cuMemAllocAsync");
  check(api_, api_.StreamSynchronize(stream_->handle()), "cuStreamSynchronize");
}

DeviceMemory::~DeviceMemory() {
  const cuda::Device::Current current(*device_);
  api_.MemFreeAsync(address_, stream_->handle());
  api_.StreamSynchronize(stream_->handle());
  stream_.reset();
}

std::byte* DeviceMemory::data() const { return std::bit_cast<std::byte*>(address_); }

void DeviceMemory::write(std::size_t offset, std::span<const std::byte> from) const {
  copy(address_ + offset, std::bit_cast<cuda::Address>(from.data()), from.size());
}

void DeviceMemory::read(std::size_t offset, std::span<std::byte> to) const {
  copy(std::bit_cast<cuda::Address>(to.data()), address_ + offset, to.size());
}

void DeviceMemory::copy(cuda::Address to, cuda::Address from, std::size_t bytes) const {
  if (bytes == 0) return;
  const cuda::Device::Current current(*device_);
  check(api_, api_.MemcpyAsync(to, from, bytes, stream_->handle()), "cuMemcpyAsync");
  check(api_, api_.StreamSynchronize(stream_->handle()), "cuStreamSynchronize");
}

int count_devices(const cuda::Api& api) {
  int count = 0;
  check(api, api.Init(0), "cuInit");
  check(api, api.DeviceGetCount(&count), "cuDeviceGetCount");
  return count;
}

}  // namespace tutti::test
