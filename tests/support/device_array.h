#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include <tutti/buffer.h>

#include "tests/support/fake_cuda.h"
#include "transport/cuda/device.h"

namespace tutti::test {

// A `DeviceArray` is an array in the memory of a device of the fake CUDA.
template <class T>
class DeviceArray {
 public:
  DeviceArray(int device, const std::vector<T>& values)
      : device_(cuda::Device::open(**cuda::load(TUTTI_FAKE_CUDA), device).take()), count_(values.size()) {
    const cuda::Device::Current current(*device_);
    if (cuMemAlloc_v2(&address_, count_ * sizeof(T)) != cuda::success)
      throw std::runtime_error("the fake CUDA has no memory");
    set(values);
  }
  ~DeviceArray() { cuMemFree_v2(address_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  const cuda::Device& device() const { return *device_; }
  // Returns the array as a buffer for an operation of a communicator.
  Buffer buffer() const {
    return Buffer(std::bit_cast<void*>(address_), count_, DataTypeOf<T>::value,
                  Memory::cuda(device_->number()));
  }
  // Returns the elements at an address that the host can access.
  std::span<T> view() const {
    return {static_cast<T*>(fake_cuda_host_address(address_, count_ * sizeof(T))), count_};
  }
  void set(const std::vector<T>& values) { std::copy(values.begin(), values.end(), view().begin()); }
  std::vector<T> values() const { return {view().begin(), view().end()}; }

 private:
  const std::unique_ptr<cuda::Device> device_;
  const std::size_t count_;
  cuda::Address address_ = 0;
};

}  // namespace tutti::test
