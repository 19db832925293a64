// Tests how staged collectives on the memory of CUDA devices fail (docs/gpu.md), with the fake CUDA.

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
using testing::HasSubstr;
using Array = DeviceArray<float>;

constexpr cuda::Outcome illegal_address = 700;

// The parameter is the number of ranks.
class StagedEnding : public testing::TestWithParam<int> {
 protected:
  StagedEnding() : together_(GetParam()) { fake_cuda_reset(2); }
  ~StagedEnding() override { expect_nothing_on_devices(); }
  static ClusterOptions options(std::chrono::nanoseconds timeout = std::chrono::seconds(120)) {
    return {.timeout = timeout, .offloads = staged_offloads(64)};
  }
  static Work sum(Communicator& comm, const Array& data, const CallOptions& options = {}) {
    return comm.all_reduce(data.buffer(), ReduceOp::sum, options);
  }
  // Runs `body` on all ranks after a first call has opened the sessions. `options` may have a short time
  // limit for the body's calls. The first call has a longer limit, since the machine may be busy.
  void run_open(const ClusterOptions& options, const std::function<void(Communicator&)>& body) {
    Cluster ranks(GetParam(), options);
    ranks.run([&](Communicator& comm) {
      try {
        const Array data(comm.rank() % 2, {1});
        sum(comm, data, {.timeout = std::chrono::seconds(120)}).wait();
      } catch (...) {
        together_.arrive_and_drop();  // the other ranks must not wait for this rank
        throw;
      }
      together_.arrive_and_wait();
      body(comm);
    });
  }
  void meet() { together_.arrive_and_wait(); }

 private:
  std::barrier<> together_;
};

class StagedEndingOfMany : public StagedEnding {};

std::unique_ptr<cuda::Stream> stream_of(const Array& data) {
  const cuda::Device::Current current(data.device());
  return cuda::Stream::create(data.device()).take();
}

// Returns an empty buffer in the memory of a device. The device need not exist.
Buffer nowhere(int device) { return Buffer(nullptr, 0, DataType::float32, Memory::cuda(device)); }

// The driver fails on exactly one rank. The error on all ranks names this rank and its device.
TEST_P(StagedEnding, AnErrorOfTheDriverOnOneRankFailsTheCommunicatorOnAll) {
  for (const char* const function : {"cuMemcpyAsync", "cuEventRecord", "cuEventQuery"}) {
    for (const int n : {1, 2, 5, 9, 20}) {
      std::atomic<int> blamed{-2};
      run_open(options(), [&](Communicator& comm) {
        const Array data(comm.rank() % 2, std::vector<float>(320, 1));
        if (comm.rank() == 0) fake_cuda_fail(function, n, illegal_address);
        meet();
        Status failed = outcome(sum(comm, data));
        while (failed.ok()) failed = outcome(sum(comm, data));
        EXPECT_EQ(failed.code(), Code::aborted) << failed.to_string();
        EXPECT_THAT(failed.message(), HasSubstr(std::string(function) + ": CUDA_ERROR_ILLEGAL_ADDRESS"));
        int nobody = -2;
        blamed.compare_exchange_strong(nobody, failed.peer());
        EXPECT_EQ(failed.peer(), blamed) << "the ranks blame different ranks";
        ASSERT_GE(failed.peer(), 0);
        EXPECT_THAT(failed.message(), HasSubstr(comm.describe(failed.peer()) + ": "));
        EXPECT_THAT(failed.message(), HasSubstr("CUDA device " + std::to_string(failed.peer() % 2) + ": "));
      });
    }
  }
}

TEST_P(StagedEnding, BrokenDevicesFailTheCommunicatorOnAllRanks) {
  run_open(options(), [&](Communicator& comm) {
    const Array data(comm.rank() % 2, std::vector<float>(320, 1));
    std::vector<Work> works;
    meet();
    for (int i = 0; i < 20; ++i) works.push_back(sum(comm, data));
    if (comm.rank() == 0) fake_cuda_break(illegal_address);
    for (Work& work : works) static_cast<void>(outcome(work));
    const Status failed = outcome(sum(comm, data));
    EXPECT_EQ(failed.code(), Code::aborted) << failed.to_string();
    EXPECT_THAT(failed.message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  });
}

// The test frees the arrays as soon as their calls have ended. A copy that still ran would access
// freed memory, and the process would crash.
TEST_P(StagedEnding, NoCopyRunsAfterACallHasEnded) {
  fake_cuda_slow_copies(300);
  for (int round = 0; round < 10; ++round) {
    run_open(options(), [&](Communicator& comm) {
      std::vector<std::unique_ptr<Array>> data;
      std::vector<Work> works;
      for (int i = 0; i < 10; ++i) {
        data.push_back(std::make_unique<Array>(comm.rank() % 2, std::vector<float>(100, 1)));
        works.push_back(sum(comm, *data.back()));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200 * round));
      if (comm.rank() == round % comm.size()) comm.abort("enough");
      for (std::size_t i = 0; i < works.size(); ++i) {
        static_cast<void>(outcome(works[i]));
        data[i].reset();
      }
      EXPECT_EQ(outcome(comm.barrier()).code(), Code::aborted);
      comm = Communicator();
    });
  }
}

TEST_P(StagedEnding, ACommunicatorIsDestroyedWithCallsInFlight) {
  fake_cuda_slow_copies(300);
  run_open(options(), [&](Communicator& comm) {
    const Array data(comm.rank() % 2, std::vector<float>(100, 1));
    std::vector<Work> works;
    for (int i = 0; i < 10; ++i) works.push_back(sum(comm, data));
    comm = Communicator();
    for (const Work& work : works) EXPECT_TRUE(work.done());
  });
}

TEST_P(StagedEnding, AStreamDoesNotWaitForAnAbortedCall) {
  run_open(options(), [&](Communicator& comm) {
    const Array data(comm.rank() % 2, {1}), other(comm.rank() % 2, {1});
    const auto stream = stream_of(data), blocked = stream_of(data);
    std::atomic<bool> may_go{false};
    const auto wait = [](void* flag) {
      while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
    };
    ASSERT_EQ(cuLaunchHostFunc(blocked->handle(), wait, &may_go), cuda::success);
    Work first = sum(comm, data, {.stream = blocked->handle()});
    Work second = sum(comm, other);
    second.wait_on(stream->handle());
    meet();
    comm.abort("enough");
    EXPECT_EQ(data.device().api().StreamSynchronize(stream->handle()), cuda::success);
    EXPECT_EQ(outcome(first).code(), Code::aborted);
    EXPECT_EQ(outcome(second).code(), Code::aborted);
    EXPECT_THROW(first.wait_on(stream->handle()), Error);
    may_go = true;
    EXPECT_EQ(data.device().api().StreamSynchronize(blocked->handle()), cuda::success);
  });
}

// The fake holds the copies back, as if the copies stood behind the waiting stream in a queue of the
// device.
TEST_P(StagedEnding, AStreamDoesNotWaitForEverForTheCopiesOfAnAbortedCall) {
  run_open(options(), [&](Communicator& comm) {
    const Array data(comm.rank() % 2, std::vector<float>(100, 1));
    const auto stream = stream_of(data);
    fake_cuda_hold_copies(true);
    meet();
    Work work = sum(comm, data);
    work.wait_on(stream->handle());
    meet();
    comm.abort("enough");
    EXPECT_EQ(data.device().api().StreamSynchronize(stream->handle()), cuda::success);
    meet();
    fake_cuda_hold_copies(false);
    EXPECT_EQ(outcome(work).code(), Code::aborted);
  });
}

TEST_P(StagedEndingOfMany, HostAgainstDeviceIsAMismatchOnAllRanks) {
  run_open(options(), [](Communicator& comm) {
    const Array there(comm.rank() % 2, {1, 2});
    std::vector<float> here = {1, 2};
    const bool odd = comm.rank() == comm.size() - 1;
    const Status differs = outcome(odd ? comm.all_reduce(here, ReduceOp::sum) : sum(comm, there));
    EXPECT_EQ(differs.code(), Code::mismatch) << differs.to_string();
  });
}

TEST_P(StagedEndingOfMany, SumAgainstMaxIsAMismatchOnAllRanks) {
  run_open(options(), [](Communicator& comm) {
    const Array data(comm.rank() % 2, std::vector<float>(100, 1));
    const ReduceOp& op = comm.rank() == 1 ? ReduceOp::max : ReduceOp::sum;
    const Status differs = outcome(comm.all_reduce(data.buffer(), op));
    EXPECT_EQ(differs.code(), Code::mismatch) << differs.to_string();
  });
}

// Rank 1 sends more than the root expects. Only these two ranks notice the mismatch themselves.
TEST_P(StagedEndingOfMany, CountsThatDifferAreAMismatchOnAllRanks) {
  run_open(options(), [](Communicator& comm) {
    const Array in(comm.rank() % 2, std::vector<float>(comm.rank() == 1 ? 101 : 100, 1));
    const auto ranks = static_cast<std::size_t>(comm.size());
    const Array out(comm.rank() % 2, std::vector<float>(100 * ranks, 1));
    const std::vector<std::uint64_t> counts(ranks, 100);
    Status differs = outcome(comm.gather_v(in.buffer(), out.buffer(), counts, 0));
    if (differs.ok()) differs = outcome(comm.barrier());  // ranks other than 0 and 1 may succeed first
    EXPECT_EQ(differs.code(), Code::mismatch) << differs.to_string();
  });
}

TEST_P(StagedEndingOfMany, ARankThatIsLateIsNamed) {
  ClusterOptions with_control = options(milliseconds(400));
  with_control.control = true;  // the control plane finds the rank for which all others wait
  run_open(with_control, [&](Communicator& comm) {
    const Array data(comm.rank() % 2, std::vector<float>(100, 1));
    if (comm.rank() != 1) {
      const Status late = outcome(sum(comm, data));
      EXPECT_EQ(late.code(), Code::timeout) << late.to_string();
      EXPECT_THAT(late.message(), HasSubstr(comm.describe(1)));
    }
    meet();
  });
}

TEST_P(StagedEndingOfMany, AnotherDeviceIsAnInvalidArgument) {
  run_open(options(), [](Communicator& comm) {
    const int usual = comm.rank() % 2;
    const Array data(comm.rank() == 1 ? 1 - usual : usual, {1, 2});
    const Status failed = outcome(sum(comm, data));
    EXPECT_EQ(failed.code(), Code::invalid_argument) << failed.to_string();
    EXPECT_EQ(failed.peer(), 1);
    EXPECT_THAT(failed.message(), HasSubstr("the buffers are in the memory of CUDA device 0"));
  });
}

// Refused calls do not count. If they counted, the next call of this rank would be matched with an earlier
// call of the other ranks.
TEST_P(StagedEndingOfMany, ACallThatOneRankRefusesCanBeMadeAgain) {
  run_open(options(), [](Communicator& comm) {
    const Array data(comm.rank() % 2, {1, 2});
    if (comm.rank() == 0) {
      const auto stream = stream_of(data);
      ASSERT_EQ(cuStreamBeginCapture_v2(stream->handle(), 0), cuda::success);
      EXPECT_EQ(outcome(sum(comm, data, {.stream = stream->handle()})).code(), Code::unsupported);
      CUgraph_st* graph = nullptr;
      EXPECT_EQ(cuStreamEndCapture(stream->handle(), &graph), cuda::success);
    }
    const auto size = static_cast<float>(comm.size());
    EXPECT_TRUE(outcome(sum(comm, data)).ok());
    EXPECT_THAT(data.values(), testing::ElementsAre(size, 2 * size));
    EXPECT_TRUE(outcome(sum(comm, data)).ok());
    EXPECT_THAT(data.values(), testing::ElementsAre(size * size, 2 * size * size));
  });
}

TEST_P(StagedEndingOfMany, ARankWithoutADriverIsNamed) {
  ClusterOptions without = options();
  without.offloads = [every = without.offloads](int rank) {
    return rank == 1 ? std::vector<std::unique_ptr<Offload>>() : every(rank);
  };
  Cluster ranks(GetParam(), without);
  ranks.run([](Communicator& comm) {
    const Status refused = outcome(comm.all_reduce(nowhere(0), ReduceOp::sum));
    EXPECT_EQ(refused.code(), Code::unsupported) << refused.to_string();
    if (comm.rank() != 1) {
      EXPECT_THAT(refused.message(),
                  HasSubstr("staged: " + comm.describe(0) + " has it, " + comm.describe(1) + " has not"));
    }
    EXPECT_TRUE(outcome(comm.barrier()).ok());
  });
}

TEST_P(StagedEnding, NoDeviceIsUnsupported) {
  fake_cuda_reset(0);
  Cluster ranks(GetParam(), options());
  ranks.run([](Communicator& comm) {
    const Status refused = outcome(comm.all_reduce(nowhere(0), ReduceOp::sum));
    EXPECT_EQ(refused.code(), Code::unsupported) << refused.to_string();
    EXPECT_THAT(refused.message(), HasSubstr("staged cannot be opened: cuInit: CUDA_ERROR_NO_DEVICE"));
  });
}

TEST_P(StagedEndingOfMany, ARankWithoutTheDeviceIsNamed) {
  Cluster ranks(GetParam(), options());
  ranks.run([](Communicator& comm) {
    const Array data(0, {1});
    Buffer buffer = data.buffer();
    if (comm.rank() == 1) buffer.memory = Memory::cuda(7);
    const Status failed = outcome(comm.all_reduce(buffer, ReduceOp::sum));
    EXPECT_EQ(failed.code(), Code::invalid_argument) << failed.to_string();
    EXPECT_EQ(failed.peer(), 1);
    EXPECT_THAT(failed.message(), HasSubstr(comm.describe(1) + ": staged cannot be opened: there is no CUDA "
                                                               "device 7: the driver finds 2"));
  });
}

TEST_P(StagedEnding, AnOpeningThatFailsLeavesNothingBehind) {
  for (const char* const function : {"cuMemHostAlloc", "cuStreamCreate", "cuEventCreate"}) {
    Cluster ranks(GetParam(), options());
    fake_cuda_fail(function, 1, 2);
    ranks.run([&](Communicator& comm) {
      const Array data(0, {1});
      const Status failed = outcome(sum(comm, data));
      EXPECT_EQ(failed.code(), Code::resource_exhausted) << function << ": " << failed.to_string();
      EXPECT_THAT(failed.message(), HasSubstr(std::string(function) + ": CUDA_ERROR_OUT_OF_MEMORY"));
    });
  }
}

// The last rank leaves, and the other ranks continue without it.
TEST_P(StagedEndingOfMany, SurvivorsContinueAfterShrink) {
  ClusterOptions with_control = options();
  with_control.control = true;
  run_open(with_control, [&](Communicator& comm) {
    const Array data(comm.rank() % 2, std::vector<float>(100, 1));
    if (comm.rank() == comm.size() - 1) {
      comm = Communicator();
      return;
    }
    EXPECT_FALSE(outcome(sum(comm, data)).ok());
    Communicator rest = comm.shrink(1).communicator;
    ASSERT_EQ(rest.size(), GetParam() - 1);
    const Array again(comm.rank() % 2, std::vector<float>(100, 1));
    const Status status = outcome(sum(rest, again));
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_THAT(again.values(), testing::Each(static_cast<float>(rest.size())));
  });
}

const auto name_of_size = [](const testing::TestParamInfo<int>& parameter) {
  return std::to_string(parameter.param);
};
INSTANTIATE_TEST_SUITE_P(Ranks, StagedEnding, testing::Values(1, 2, 3, 4, 7, 8), name_of_size);
INSTANTIATE_TEST_SUITE_P(Ranks, StagedEndingOfMany, testing::Values(2, 3, 4, 7, 8), name_of_size);

}  // namespace
}  // namespace tutti::test
