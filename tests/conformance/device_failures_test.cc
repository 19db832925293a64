// Lets functions of the CUDA driver fail, one at a time. Tests that all ranks then learn the same cause, and
// that no rank hangs, leaks memory or dies. The fake NCCL carries out the calls, or they are
// staged.

#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/nccl_world.h"
#include "tests/support/mirrored_offload.h"

namespace tutti::test {
namespace {

constexpr int size = 3;

// These are functions that tutti and the fake NCCL call. Functions that free something or wait for a stream
// are left out. If one of those failed while the device still worked, memory would be lost.
constexpr const char* functions[] = {"cuDeviceGetCount",    "cuDeviceGet",
                                     "cuDeviceGetPCIBusId", "cuDevicePrimaryCtxRetain",
                                     "cuCtxPushCurrent_v2", "cuCtxGetDevice",
                                     "cuMemHostAlloc",      "cuMemHostGetDevicePointer_v2",
                                     "cuMemcpyAsync",       "cuMemAlloc_v2",
                                     "cuMemsetD8Async",     "cuMemAllocAsync",
                                     "cuStreamCreate",      "cuStreamGetCtx",
                                     "cuStreamWaitEvent",   "cuStreamWaitValue32_v2",
                                     "cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode",
                                     "cuEventCreate",       "cuEventRecord",
                                     "cuEventQuery",        "cuLaunchHostFunc"};

// The first parameter is the library that the ranks use.
class DriverFailure : public NcclWorld,
                      public testing::WithParamInterface<std::tuple<std::string, const char*>> {
 protected:
  static ClusterOptions world() {
    ClusterOptions made = options(std::chrono::seconds(60));
    if (std::get<0>(GetParam()) == "staged") made.offloads = staged_offloads(64);
    return made;
  }
};

// `Program` makes the calls of a rank. It goes on to the end after a failure, so that all ranks make the same
// calls.
class Program {
 public:
  Program(Communicator& comm, DeviceStream& stream, const DeviceArray<float>& data)
      : comm_(comm), stream_(stream), data_(data) {}

  void run() {
    add({.stream = stream_.handle()});
    reduce(ReduceOp::premultiplied_sum(0.5));
    exchange();
    for (int i = 0; i < 5; ++i) works_.push_back(comm_.all_reduce(data_.buffer(), ReduceOp::max));
    finish();
    allocate();
    split();
  }

 private:
  void add(const CallOptions& options) {
    works_.push_back(comm_.all_reduce(data_.buffer(), ReduceOp::sum, options));
    try {
      works_.back().wait_on(stream_.handle());
    } catch (const Error&) {
    }
    finish();
  }
  void reduce(const ReduceOp& op) {
    works_.push_back(comm_.all_reduce(data_.buffer(), op));
    finish();
  }
  void exchange() {
    works_.push_back(comm_.all_to_all(data_.buffer(), data_.buffer()));
    finish();
  }
  void allocate() {
    try {
      const Allocation memory = comm_.allocate(4096, Memory::cuda(comm_.rank()));
    } catch (const Error&) {
    }
  }
  void split() {
    try {
      Communicator other = std::move(*comm_.split(0));
      static_cast<void>(outcome(other.all_reduce(data_.buffer(), ReduceOp::sum)));
    } catch (const Error&) {
    }
  }
  void finish() {
    for (const Work& work : works_) static_cast<void>(outcome(work));
    works_.clear();
  }

  Communicator& comm_;
  DeviceStream& stream_;
  const DeviceArray<float>& data_;
  std::vector<Work> works_;
};

TEST_P(DriverFailure, HasOneCauseOnAllRanks) {
  const auto& [library, function] = GetParam();
  for (const int n : {1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 30, 45, 70}) {
    fake_cuda_reset(16);
    std::barrier together(size);
    std::vector<Status> ends(size);
    {
      Cluster ranks(size, world());
      ranks.run([&](Communicator& comm) {
        {
          DeviceStream stream(comm.rank());
          const DeviceArray<float> data(comm.rank(), std::vector<float>(90, 1));
          together.arrive_and_wait();
          if (comm.rank() == 0) fake_cuda_fail(function, n, illegal_address);
          together.arrive_and_wait();
          Program(comm, stream, data).run();
          together.arrive_and_wait();
          if (comm.rank() == 0) fake_cuda_fail(function, 1 << 30, illegal_address);
          together.arrive_and_wait();
        }
        static_cast<void>(outcome(comm.barrier()));
        ends[static_cast<std::size_t>(comm.rank())] = comm.status();
      });
    }
    for (const Status& end : ends) {
      EXPECT_EQ(end.to_string(), ends.front().to_string()) << function << " " << n;
      EXPECT_NE(end.code(), Code::timeout) << function << " " << n << ": " << end.to_string();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DriverFailure,
                         testing::Combine(testing::Values("nccl", "staged"), testing::ValuesIn(functions)),
                         [](const auto& each) {
                           return std::get<0>(each.param) + "_" + std::get<1>(each.param);
                         });

}  // namespace
}  // namespace tutti::test
