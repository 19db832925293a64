#include <cstddef>
#include <cstring>

#include "tests/support/fake_cuda.h"
#include "tests/support/fake_cuda_machine.h"

using tutti::cuda::Address;
using tutti::cuda::Outcome;
using tutti::cuda::StreamHandle;
using tutti::cuda::success;
using tutti::test::FakeMachine;

// These functions allocate, set and free memory in the order of a stream, and return facts about an
// address.
extern "C" {

Outcome cuMemAllocAsync(Address* address, std::size_t bytes, StreamHandle stream) {
  FAKE_CUDA_ENTER();
  FAKE_CUDA_REQUIRE(bytes != 0, invalid_value);
  const CUctx_st* const context = FakeMachine::the().context_of(stream);
  FAKE_CUDA_REQUIRE(context != nullptr, invalid_handle);
  *address = FakeMachine::the().memory.allocate(bytes, context->device);
  return *address == 0 ? tutti::test::out_of_memory : success;
}

Outcome cuMemFreeAsync(Address address, StreamHandle stream) {
  FAKE_CUDA_ENTER();
  FAKE_CUDA_REQUIRE(FakeMachine::the().memory.is_of_device(address), invalid_value);
  return FakeMachine::the().add(stream, [address] { FakeMachine::the().memory.free(address); });
}

Outcome cuMemsetD8Async(Address to, unsigned char value, std::size_t bytes, StreamHandle stream) {
  FAKE_CUDA_ENTER();
  FAKE_CUDA_REQUIRE(FakeMachine::the().memory.is_of_device(to), invalid_value);
  std::byte* const view = FakeMachine::the().memory.view(to, bytes);
  FAKE_CUDA_REQUIRE(view != nullptr, invalid_value);
  return FakeMachine::the().add(stream, [view, value, bytes] { std::memset(view, value, bytes); });
}

Outcome cuPointerGetAttribute(void* value, int attribute, Address address) {
  FAKE_CUDA_ENTER();
  const int device = FakeMachine::the().memory.device_of(address);
  FAKE_CUDA_REQUIRE(device >= 0, invalid_value);
  if (attribute == tutti::cuda::attribute_device_ordinal) {
    *static_cast<int*>(value) = device;
  } else {
    FAKE_CUDA_REQUIRE(attribute == tutti::cuda::attribute_memory_type, invalid_value);
    *static_cast<unsigned*>(value) = tutti::cuda::memory_type_device;
  }
  return success;
}

}  // extern "C"
