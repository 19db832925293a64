#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "tests/support/fake_cuda.h"

// These functions connect torch's devices, streams and events to those of the fake CUDA.
namespace fake_device {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

// The number of streams in the pool of a device. Their ids begin at 1.
inline constexpr int pool_size = 3;

// Gives this process `count` devices. Call it once, and only after the last fork.
void start(int count);

// Throws if a function of the fake CUDA has failed.
void check(tutti::cuda::Outcome outcome, const char* what);

// A `Current` makes the context of a device current in the driver, as long as the object exists.
class Current {
 public:
  explicit Current(DeviceIndex device);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

tutti::cuda::StreamHandle handle_of(const Stream& stream);
Stream stream_of(DeviceIndex device, c10::StreamId id);
// Returns the device's current stream.
Stream current_stream(Device device);
// Makes a stream that is not in the pool.
c10::StreamId add_stream(DeviceIndex device);
// Returns the stream that frees memory that was used outside the stream of its allocation.
Stream freeing_stream(DeviceIndex device);

// Answers torch's requests about streams and events.
const c10::impl::DeviceGuardImplInterface& guard();

}  // namespace fake_device
