#pragma once

#include <cstddef>
#include <functional>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/StorageImpl.h>

// Kernels for tensors in the memory of the fake CUDA. An operator without a kernel runs on the host.
namespace fake_device {

// Makes the current stream of a device call a function.
void launch(c10::Device device, std::function<void()> kernel);
// Returns a host tensor through which a stream can access the elements of `tensor`.
at::Tensor seen_by_stream(const at::Tensor& tensor);
// Gives a storage new memory with undefined content.
void replace(c10::StorageImpl& storage, std::size_t bytes);

}  // namespace fake_device
