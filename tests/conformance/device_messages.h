#pragma once

#include <memory>

#include "tests/conformance/on_each_transport.h"
#include "tests/support/device_array.h"
#include "tests/support/mirrored_offload.h"
#include "transport/cuda/word.h"

namespace tutti::test {

using IntArray = DeviceArray<int>;

// `DeviceMessagesOnEachTransport` is a fixture of tests of messages in device memory. At the end of a test,
// the devices must hold nothing any more. (The memory of a `cuda::Word` is never freed.)
class DeviceMessagesOnEachTransport : public OnEachTransport {
 protected:
  DeviceMessagesOnEachTransport() { fake_cuda_reset(2); }
  ~DeviceMessagesOnEachTransport() override {
    const FakeCudaCounts left = fake_cuda_counts();
    EXPECT_EQ(left.streams + left.events, 0);
    EXPECT_EQ(left.device_bytes, 0u);
    EXPECT_EQ(left.pinned_bytes % cuda::Word::page_bytes, 0u);
    EXPECT_LT(left.pinned_bytes, 64u * cuda::Word::page_bytes);
  }
  // A message is copied in pieces of 64 bytes.
  ClusterOptions options() const { return {.transport = GetParam(), .offloads = staged_offloads(64)}; }
};

inline std::unique_ptr<cuda::Stream> new_stream(const IntArray& data) {
  const cuda::Device::Current current(data.device());
  return cuda::Stream::create(data.device()).take();
}

}  // namespace tutti::test
