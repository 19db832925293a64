#pragma once

#include <optional>

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

namespace tutti_torch {

// These functions reach CUDA through torch's interface for all kinds of devices. So the extension compiles
// against every build of torch, and needs no headers of CUDA.

// Returns the calling thread's current stream of a CUDA device. Returns nothing for the CPU, and also if this
// build of torch cannot use CUDA. With such a build, no tensor has memory on a CUDA device.
std::optional<c10::Stream> current_stream(at::Device device);

// Returns a stream from torch's pool. It contains no work of the program's current stream.
c10::Stream pool_stream(at::Device device);

// Returns the stream as a cudaStream_t, as the library expects it. Throws if this version of torch
// does not provide the handle.
void* handle_of(const c10::Stream& stream);

// Tells torch's allocator that the stream uses the tensor. The allocator then does not reuse the
// memory of a freed tensor before the stream has done its present work.
void record_use(const at::Tensor& tensor, const c10::Stream& stream);

}  // namespace tutti_torch
