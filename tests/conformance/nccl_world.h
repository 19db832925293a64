#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/conformance/on_each_transport.h"
#include "tests/support/device_array.h"
#include "tests/support/fake_nccl.h"
#include "transport/cuda/device.h"

namespace tutti::test {

// CUDA reports this error after a kernel has accessed an invalid address
// (CUDA_ERROR_ILLEGAL_ADDRESS).
constexpr cuda::Outcome illegal_address = 700;

// A `DeviceStream` is a stream of a device of the fake CUDA.
class DeviceStream {
 public:
  explicit DeviceStream(int device);
  ~DeviceStream();
  void* handle() const { return stream_->handle(); }
  void synchronise() const;
  // Adds a function, which the stream executes.
  void add(void (*function)(void*), void* data) const;
  void begin_capture() const;
  // Returns whether the capture is valid.
  bool end_capture() const;

 private:
  std::unique_ptr<cuda::Device> device_;
  std::unique_ptr<cuda::Stream> stream_;
};

// `NcclWorld` is a fixture of tests whose ranks use the fake NCCL. At the end, the fixture checks that no
// resources are left.
class NcclWorld : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  static std::unique_ptr<Offload> offload();
  static ClusterOptions options(std::chrono::nanoseconds timeout = std::chrono::seconds(120));
};

// Initializes the fake CUDA, like a program that allocates memory before `init`.
void initialize_cuda();

// Adds the arrays of all ranks, in place, and waits.
Status sum_on_device(Communicator& comm, const DeviceArray<float>& data, const CallOptions& options = {});

}  // namespace tutti::test
