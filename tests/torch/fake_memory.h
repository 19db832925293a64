#pragma once

#include <vector>

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

// Memory of the fake CUDA, which torch's tensors on the fake devices use.
namespace fake_device {

// Returns the allocator of this memory. It behaves like torch's own: memory is freed after the work in the
// stream of its allocation, and after the work in all streams that use it.
c10::Allocator& allocator();

// Notes that a stream uses the memory.
void add_user(const c10::DataPtr& data, const c10::Stream& stream);
// Returns the streams that torch knows as users of the memory.
std::vector<c10::StreamId> users_of(const c10::DataPtr& data);

}  // namespace fake_device
