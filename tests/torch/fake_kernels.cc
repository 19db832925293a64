#include "tests/torch/fake_kernels.h"

#include <bit>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <torch/library.h>

#include "tests/torch/fake_memory.h"
#include "tests/torch/fake_streams.h"

namespace fake_device {

void launch(Device device, std::function<void()> kernel) {
  const Current current(device.index());
  const auto call = [](void* kernel) {
    const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(kernel));
    (*owned)();
  };
  check(
      cuLaunchHostFunc(handle_of(current_stream(device)), call, new std::function<void()>(std::move(kernel))),
      "cuLaunchHostFunc");
}

at::Tensor seen_by_stream(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return tensor;
  const auto base = std::bit_cast<tutti::cuda::Address>(tensor.storage().data_ptr().get());
  auto* const memory = static_cast<char*>(fake_cuda_host_address(base, tensor.storage().nbytes()));
  TORCH_CHECK(memory != nullptr, "the fake CUDA has no such memory");
  return at::from_blob(memory + tensor.storage_offset() * tensor.itemsize(), tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU));
}

void replace(c10::StorageImpl& storage, std::size_t bytes) {
  const c10::DeviceGuard on(storage.device());
  storage.set_data_ptr_noswap(allocator().allocate(bytes));
  storage.set_nbytes(bytes);
}

namespace {

at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool) {
  if (to.numel() == 0) return to;
  const Device device = to.is_cuda() ? to.device() : from.device();
  launch(device, [a = seen_by_stream(to), b = seen_by_stream(from)] { a.copy_(b); });
  if (to.is_cpu() || from.is_cpu()) guard().synchronizeStream(current_stream(device));
  return to;
}

at::Tensor& fill(at::Tensor& tensor, const at::Scalar& value) {
  if (tensor.numel() != 0) launch(tensor.device(), [a = seen_by_stream(tensor), value] { a.fill_(value); });
  return tensor;
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard on(device);
  return at::detail::empty_strided_generic(
      size, stride, &allocator(), c10::DispatchKeySet(c10::DispatchKey::CUDA), type.value_or(at::kFloat));
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard on(device);
  return at::detail::empty_generic(size, &allocator(), c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   type.value_or(at::kFloat), format);
}

at::Scalar item(const at::Tensor& tensor) { return tensor.cpu().item(); }

at::Tensor view(const at::Tensor& tensor, at::IntArrayRef size) { return at::native::view(tensor, size); }

at::Tensor as_strided(const at::Tensor& tensor, at::IntArrayRef size, at::IntArrayRef stride,
                      std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(tensor, size, stride, offset);
}

// Copies a result of the host to the device. The tensor on the device may have no elements yet.
at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  at::Tensor there = to;
  if (there.sizes() != from.sizes()) {
    TORCH_CHECK(there.numel() == 0, "the fake CUDA cannot resize a tensor with elements");
    replace(*there.storage().unsafeGetStorageImpl(), from.nbytes());
    there.unsafeGetTensorImpl()->set_sizes_contiguous(from.sizes());
  }
  return there.copy_(from);
}

// Carries out an operator that has no kernel above: copies the tensors to the host, and copies the results
// back.
void compute_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&compute_on_host>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("copy_", copy);
  library.impl("fill_.Scalar", fill);
  library.impl("view", view);
  library.impl("as_strided", as_strided);
  library.impl("view_as_real", at::native::view_as_real);
  library.impl("_local_scalar_dense", item);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
}

}  // namespace
}  // namespace fake_device
