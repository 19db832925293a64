#pragma once

#include <memory>

#include "tests/conformance/on_each_transport.h"
#include "tests/support/device_array.h"
#include "tests/support/device_leftovers.h"
#include "tests/support/mirrored_offload.h"

namespace tutti::test {

using IntArray = DeviceArray<int>;

// `DeviceMessagesOnEachTransport` is a fixture of tests of messages in device memory. At the end of a test,
// the devices must hold nothing any more.
class DeviceMessagesOnEachTransport : public OnEachTransport {
 protected:
  DeviceMessagesOnEachTransport() { fake_cuda_reset(2); }
  ~DeviceMessagesOnEachTransport() override { expect_nothing_on_devices(); }
  // A message is copied in pieces of 64 bytes.
  ClusterOptions options() const { return {.transport = GetParam(), .offloads = staged_offloads(64)}; }
};

inline std::unique_ptr<cuda::Stream> new_stream(const IntArray& data) {
  const cuda::Device::Current current(data.device());
  return cuda::Stream::create(data.device()).take();
}

}  // namespace tutti::test
