// Tests collectives on the memory of CUDA devices. The collectives are staged through the host
// (docs/gpu.md). The devices are those of the fake CUDA. staged_endings_test.cc tests how such
// calls fail.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/on_each_transport.h"
#include "tests/support/collective_case.h"
#include "tests/support/device_array.h"
#include "tests/support/device_leftovers.h"
#include "tests/support/mirrored_offload.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using testing::Each;
using testing::HasSubstr;

// The parameter is the number of ranks.
class Staged : public testing::TestWithParam<int> {
 protected:
  Staged() { fake_cuda_reset(2); }
  ~Staged() override { expect_nothing_on_devices(); }
  static ClusterOptions options(std::size_t piece_bytes = 64, const std::string& transport = "inproc") {
    return {.transport = transport, .offloads = staged_offloads(piece_bytes)};
  }
};

class StagedOfMany : public Staged {};

Work sum_there(Communicator& comm, const DeviceArray<float>& data, const CallOptions& options = {}) {
  return comm.all_reduce(data.buffer(), ReduceOp::sum, options);
}

// Makes the stream wait while `flag` is false.
void block(const cuda::Stream& stream, std::atomic<bool>& flag) {
  const auto wait = [](void* until) {
    while (!*static_cast<std::atomic<bool>*>(until)) std::this_thread::yield();
  };
  ASSERT_EQ(cuLaunchHostFunc(stream.handle(), wait, &flag), cuda::success);
}

TEST_P(Staged, EveryCollectiveInSmallPieces) {
  const auto piece_bytes = 200 * static_cast<std::size_t>(GetParam());
  Cluster ranks(GetParam(), {.offloads = mirrored_staged_offloads(piece_bytes)});
  ranks.run([&](Communicator& comm) {
    for (const CollectiveCase& test : tested_matrix(comm.size())) ASSERT_EQ(run_case(comm, test), "");
  });
}

TEST_P(Staged, HostAndDeviceOperationsTakeTurns) {
  for (const char* const transport : {"inproc", "shared"}) {
    Cluster ranks(GetParam(), options(64, transport));
    ranks.run([&](Communicator& comm) {
      const int pairs = comm.size() == 2 ? 5'000 : 200;
      std::vector<float> here(1);
      DeviceArray<float> there(comm.rank() % 2, {0});
      for (int i = 0; i < pairs; ++i) {
        here[0] = there.view()[0] = static_cast<float>(comm.rank() + i);
        Work staged = sum_there(comm, there);
        Work ordinary = comm.all_reduce(here, ReduceOp::max);
        ordinary.wait();
        staged.wait();
        ASSERT_EQ(here[0], static_cast<float>(comm.size() - 1 + i));
        const int sum = comm.size() * (comm.size() - 1) / 2 + comm.size() * i;
        ASSERT_EQ(there.view()[0], static_cast<float>(sum));
      }
    });
  }
}

TEST_P(Staged, ManyCallsInFlightOnOneDevice) {
  Cluster ranks(GetParam(), options());
  ranks.run([](Communicator& comm) {
    std::vector<std::unique_ptr<DeviceArray<float>>> data;
    std::vector<Work> works;
    for (int i = 0; i < 50; ++i) {
      const auto count = static_cast<std::size_t>(i * 7 % 200 + 1);
      data.push_back(
          std::make_unique<DeviceArray<float>>(0, std::vector<float>(count, static_cast<float>(i))));
      works.push_back(sum_there(comm, *data.back()));
    }
    for (std::size_t i = works.size(); i-- > 0;) {
      works[i].wait();
      ASSERT_THAT(data[i]->values(), Each(static_cast<float>(i) * static_cast<float>(comm.size())));
    }
  });
}

TEST_P(Staged, NoThreadWaitsForTheDevice) {
  Cluster ranks(GetParam(), options());
  std::barrier together(GetParam());
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> data(comm.rank() % 2, std::vector<float>(1000, 1));
    const auto stream = [&] {
      const cuda::Device::Current current(data.device());
      return cuda::Stream::create(data.device()).take();
    }();
    for (int i = 0; i < 5; ++i) {
      Work work = sum_there(comm, data, {.stream = stream->handle()});
      work.wait_on(stream->handle());
      work.wait();
    }
    together.arrive_and_wait();
    EXPECT_EQ(fake_cuda_counts().host_synchronisations, 0);
    together.arrive_and_wait();
  });
}

TEST_P(Staged, ACallFollowsItsStreamAndAStreamWaitsForTheCall) {
  fake_cuda_slow_copies(500);
  Cluster ranks(GetParam(), options());
  ranks.run([](Communicator& comm) {
    DeviceArray<float> data(comm.rank() % 2, std::vector<float>(40, 0));
    const cuda::Device::Current current(data.device());
    const auto stream = cuda::Stream::create(data.device()).take();
    struct Step {
      const DeviceArray<float>& data;
      float value = 0;
      float seen = 0;
    } step{data};
    const auto write = [](void* self) {
      const auto* const to = static_cast<Step*>(self);
      std::this_thread::sleep_for(milliseconds(2));
      std::ranges::fill(to->data.view(), to->value);
    };
    const auto read = [](void* self) {
      auto* const from = static_cast<Step*>(self);
      from->seen = from->data.view()[39];
    };
    for (int i = 1; i <= 10; ++i) {
      step.value = static_cast<float>(i);
      ASSERT_EQ(cuLaunchHostFunc(stream->handle(), write, &step), cuda::success);
      Work work = sum_there(comm, data, {.stream = stream->handle()});
      work.wait_on(stream->handle());
      ASSERT_EQ(cuLaunchHostFunc(stream->handle(), read, &step), cuda::success);
      ASSERT_EQ(data.device().api().StreamSynchronize(stream->handle()), cuda::success);
      EXPECT_EQ(step.seen, static_cast<float>(i * comm.size()));
      work.wait();
      work.wait_on(stream->handle());
      ASSERT_EQ(data.device().api().StreamSynchronize(stream->handle()), cuda::success);
    }
  });
}

// The default stream has the handle CU_STREAM_LEGACY. A device has only one such stream. So each rank needs
// its own device in this test. On a shared device, the call of one rank would wait for the call of the
// other rank.
TEST(StagedStreams, ACallFollowsTheDefaultStream) {
  fake_cuda_reset(2);
  Cluster ranks(2, {.offloads = staged_offloads(64)});
  ranks.run([](Communicator& comm) {
    DeviceArray<float> data(comm.rank(), std::vector<float>(40, 1));
    const auto legacy = reinterpret_cast<void*>(1);
    Work work = sum_there(comm, data, {.stream = legacy});
    work.wait_on(legacy);
    work.wait();
    EXPECT_THAT(data.values(), Each(static_cast<float>(comm.size())));
  });
}

// A call begins only when the earlier work in its stream has ended. Later calls wait for that call.
TEST_P(Staged, CallsWaitForTheStreamOfTheFirst) {
  Cluster ranks(GetParam(), options());
  ranks.run([](Communicator& comm) {
    DeviceArray<float> first(0, {1}), second(0, {1}), third(0, {1});
    sum_there(comm, first).wait();
    comm.barrier().wait();
    const cuda::Device::Current current(first.device());
    const auto stream = cuda::Stream::create(first.device()).take();
    std::atomic<bool> may_go{false};
    block(*stream, may_go);
    Work blocked = sum_there(comm, second, {.stream = stream->handle()});
    Work next = sum_there(comm, third);
    EXPECT_FALSE(next.wait_for(milliseconds(20)));
    EXPECT_EQ(second.view()[0], 1.0f);
    may_go = true;
    next.wait();
    EXPECT_TRUE(blocked.done());
    EXPECT_EQ(second.view()[0], static_cast<float>(comm.size()));
  });
}

TEST_P(Staged, AStreamUnderCaptureIsRefusedAndTheCaptureRemainsValid) {
  Cluster ranks(GetParam(), options());
  ranks.run([](Communicator& comm) {
    DeviceArray<float> data(0, {1, 1});
    sum_there(comm, data).wait();
    const cuda::Device::Current current(data.device());
    const auto stream = cuda::Stream::create(data.device()).take();
    ASSERT_EQ(cuStreamBeginCapture_v2(stream->handle(), 0), cuda::success);
    if (comm.rank() == 0) {  // a refused call does not count, so the other ranks need not make it
      const Status refused = outcome(sum_there(comm, data, {.stream = stream->handle()}));
      EXPECT_EQ(refused.code(), Code::unsupported) << refused.to_string();
      EXPECT_THAT(refused.message(), HasSubstr("the stream is being captured into a graph"));
    }
    Work unaffected = sum_there(comm, data);
    EXPECT_TRUE(outcome(unaffected).ok()) << "calls without this stream continue during the capture";
    CUgraph_st* graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream->handle(), &graph), cuda::success);
    EXPECT_TRUE(comm.status().ok());
  });
}

TEST_P(StagedOfMany, NoStreamUnderCaptureCanWaitForACall) {
  Cluster ranks(GetParam(), options());
  std::barrier together(GetParam());
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> data(0, {1, 1});
    sum_there(comm, data).wait();
    together.arrive_and_wait();
    if (comm.rank() == 0) {
      const cuda::Device::Current current(data.device());
      const auto stream = cuda::Stream::create(data.device()).take();
      ASSERT_EQ(cuStreamBeginCapture_v2(stream->handle(), 0), cuda::success);
      Work work = sum_there(comm, data);
      EXPECT_THROW(work.wait_on(stream->handle()), Error);
      CUgraph_st* graph = nullptr;
      EXPECT_EQ(cuStreamEndCapture(stream->handle(), &graph), cuda::success);
      together.arrive_and_wait();
      work.wait();
    } else {
      together.arrive_and_wait();
      sum_there(comm, data).wait();
    }
  });
}

// Rank 0 has as many pieces in flight as there is room for, while the other ranks have not made the
// call yet.
TEST_P(StagedOfMany, FourPiecesAreUnderWay) {
  Cluster ranks(GetParam(), options(64));
  std::barrier together(GetParam());
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> data(0, std::vector<float>(160, 1));
    comm.broadcast(data.buffer(), 0).wait();
    together.arrive_and_wait();
    Work work;
    const int before = fake_cuda_counts().copies;
    together.arrive_and_wait();
    if (comm.rank() == 0) {
      work = sum_there(comm, data);
      while (fake_cuda_counts().copies < before + 4) std::this_thread::yield();
      EXPECT_FALSE(work.wait_for(milliseconds(20)));
      EXPECT_EQ(fake_cuda_counts().copies, before + 4);
    }
    together.arrive_and_wait();
    if (comm.rank() != 0) work = sum_there(comm, data);
    work.wait();
    EXPECT_THAT(data.values(), Each(static_cast<float>(comm.size())));
  });
}

TEST_P(StagedOfMany, SplitOpensSessionsOfItsOwn) {
  Cluster ranks(GetParam(), options());
  ranks.run([](Communicator& comm) {
    DeviceArray<float> data(0, std::vector<float>(100, 1));
    sum_there(comm, data).wait();
    Communicator half = std::move(*comm.split(comm.rank() % 2));
    data.set(std::vector<float>(100, 1));
    sum_there(half, data).wait();
    EXPECT_THAT(data.values(), Each(static_cast<float>(half.size())));
  });
}

const auto name_of_staged_size = [](const testing::TestParamInfo<int>& parameter) {
  return std::to_string(parameter.param);
};
INSTANTIATE_TEST_SUITE_P(Ranks, Staged, testing::Values(1, 2, 3, 4, 7, 8), name_of_staged_size);
INSTANTIATE_TEST_SUITE_P(Ranks, StagedOfMany, testing::Values(2, 3, 4, 7, 8), name_of_staged_size);

}  // namespace
}  // namespace tutti::test
