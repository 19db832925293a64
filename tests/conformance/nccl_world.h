#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/conformance/on_each_transport.h"
#include "tests/support/collective_case.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/fake_nccl.h"
#include "transport/cuda/device.h"

namespace tutti::test {

// `DeviceMemory` is memory of a device of the fake CUDA.
class DeviceMemory {
 public:
  DeviceMemory(int device, std::size_t bytes);
  explicit DeviceMemory(int device, std::span<const float> elements);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void write(const void* from, std::size_t bytes, std::size_t offset = 0);
  void read(void* to, std::size_t bytes, std::size_t offset = 0) const;
  float first() const;
  std::byte* at(std::size_t offset) const;
  std::span<std::byte> bytes() const { return {at(0), bytes_}; }
  // Returns the memory as a buffer of floats.
  Buffer floats() const;

 private:
  const std::unique_ptr<cuda::Device> device_;
  const std::size_t bytes_;
  cuda::Address address_ = 0;
};

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

// Performs a case's call in the memory of the device with the number of the rank.
void perform_on_device(Communicator& comm, const CollectiveCase& test, const CaseCall& call);

// `NcclWorld` is a fixture of tests whose ranks use the fake NCCL. Afterwards it checks that nothing is left.
class NcclWorld : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  static std::vector<std::unique_ptr<Offload>> offloads();
  static ClusterOptions options(std::chrono::nanoseconds timeout = std::chrono::seconds(120));
};

// Adds the memory of all ranks, in place, and waits.
Status sum_on_device(Communicator& comm, DeviceMemory& memory, const CallOptions& options = {});

}  // namespace tutti::test
