#include "bindings/torch/streams.h"

#include <bit>
#include <cstdint>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "bindings/torch/version.h"

namespace tutti_torch {

std::optional<c10::Stream> current_stream(at::Device device) {
  if (!device.is_cuda() || !c10::impl::hasDeviceGuardImpl(device.type())) return std::nullopt;
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

c10::Stream pool_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

#if TUTTI_TORCH_AT_LEAST(2, 11)
// The handle of CUDA's default stream is null, but null tells the library that there is no stream.
// So this function returns the other handle of the default stream, CU_STREAM_LEGACY.
void* handle_of(const c10::Stream& stream) {
  void* const handle = stream.native_handle();
  return handle == nullptr ? std::bit_cast<void*>(std::uintptr_t{1}) : handle;
}
#else
void* handle_of(const c10::Stream&) {
  C10_THROW_ERROR(NotImplementedError, "tutti: CUDA tensors need torch 2.11 or later: torch " TORCH_VERSION
                                       " does not tell other libraries the current stream");
}
#endif

void record_use(const at::Tensor& tensor, const c10::Stream& stream) {
  c10::impl::VirtualGuardImpl(stream.device_type())
      .recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

}  // namespace tutti_torch
