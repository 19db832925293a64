// Tests how calls of the fake NCCL end: by errors, timeouts and aborts. Also tests calls that follow streams.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/nccl_world.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// The parameter is the number of queries that NCCL needs to put a group into its stream.
class NcclEnding : public NcclWorld, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    NcclWorld::SetUp();
    fake_nccl().launch_queries = GetParam();
  }
};

// A failure of the communicator also ends earlier calls that a rank has not completed yet. So tests
// that provoke a failure first wait at the barrier `together` until every rank has completed the
// earlier calls.

TEST_P(NcclEnding, AnErrorWhenACallIsIssuedFailsTheCommunicatorOnAll) {
  fake_nccl().refusal.call = 1;
  fake_nccl().refusal.rank = 1;
  Cluster ranks(3, options());
  std::barrier together(3);
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    EXPECT_TRUE(sum_on_device(comm, memory).ok());
    together.arrive_and_wait();
    for (int i = 0; i < 2; ++i) {
      const Status failed = sum_on_device(comm, memory);
      EXPECT_EQ(failed.code(), Code::aborted) << failed.to_string();
      EXPECT_EQ(failed.peer(), 1);
      EXPECT_THAT(failed.message(), HasSubstr(comm.describe(1) + ": nccl: ncclAllReduce: internal error"));
    }
  });
}

TEST_P(NcclEnding, AnAsynchronousErrorIsTheOneCauseOnAllRanks) {
  fake_nccl().failure.call = 1;
  fake_nccl().failure.rank = 2;
  Cluster ranks(4, options());
  std::barrier together(4);
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    EXPECT_TRUE(sum_on_device(comm, memory).ok());
    together.arrive_and_wait();
    const Status failed = sum_on_device(comm, memory);
    EXPECT_EQ(failed.code(), Code::aborted) << failed.to_string();
    EXPECT_EQ(failed.peer(), 2);
    EXPECT_THAT(failed.message(), HasSubstr(comm.describe(2) + ": nccl: "));
    EXPECT_THAT(failed.message(), HasSubstr("internal error"));
  });
}

// A rank's NCCL notices that a connection has ended, but does not know which rank ended it.
TEST_P(NcclEnding, ARemoteErrorIsReportedIfNobodyKnowsBetter) {
  fake_nccl().failure.outcome = nccl::remote_error;
  fake_nccl().failure.rank = 0;
  Cluster ranks(2, options());
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    const Status failed = sum_on_device(comm, memory);
    EXPECT_EQ(failed.code(), Code::aborted) << failed.to_string();
    EXPECT_EQ(failed.peer(), 0);
    EXPECT_THAT(failed.message(), HasSubstr("remote process exited"));
  });
}

TEST_P(NcclEnding, AFailureOfADeviceIsNamed) {
  Cluster ranks(2, options());
  std::barrier together(2);
  std::optional<DeviceArray<float>> memory[2];
  ranks.run([&](Communicator& comm) {
    DeviceArray<float>& mine = memory[comm.rank()].emplace(comm.rank(), std::vector<float>(3, 1));
    EXPECT_TRUE(sum_on_device(comm, mine).ok());
    together.arrive_and_wait();
    if (comm.rank() == 0) fake_cuda_break(illegal_address);
    const Status failed = sum_on_device(comm, mine);
    EXPECT_EQ(failed.code(), Code::aborted) << failed.to_string();
    EXPECT_THAT(failed.message(), HasSubstr("nccl: CUDA device"));
    EXPECT_THAT(failed.message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
    comm = Communicator();
  });
}

// The driving thread serves other communicators while NCCL aborts.
TEST_P(NcclEnding, ACallThatHangsTimesOutWhileNcclAborts) {
  fake_nccl().hang.call = 1;
  fake_nccl().hang.rank = 1;
  fake_nccl().abort_blocks = true;
  Cluster ranks(3, options());
  std::barrier together(3);
  ranks.run([&](Communicator& comm) {
    Communicator hanging = std::move(*comm.split(0));
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    EXPECT_TRUE(sum_on_device(hanging, memory).ok());
    together.arrive_and_wait();
    const CallOptions soon{.timeout = milliseconds(300)};
    const Work hangs = hanging.all_reduce(memory.buffer(), ReduceOp::sum, soon);
    while (fake_nccl().aborting < 3) comm.progress();
    for (int i = 0; i < 10; ++i) comm.barrier().wait();
    EXPECT_FALSE(hangs.done()) << "NCCL may still use the memory";
    together.arrive_and_wait();
    fake_nccl().abort_blocks = false;
    const Status late = outcome(hangs);
    EXPECT_EQ(late.code(), Code::timeout) << late.to_string();
    EXPECT_THAT(late.message(), HasSubstr("was not over in time; nccl has not completed it"));
  });
}

// The second call starts only after the work in the stream, and that work waits for the first call. NCCL's
// abort waits for both calls.
TEST_P(NcclEnding, ACallBehindAStreamThatWaitsForAnotherCallEndsWithTheCommunicator) {
  fake_nccl().hang.rank = 1;
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    const DeviceStream stream(comm.rank());
    const DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    const CallOptions in_stream{.stream = stream.handle()};
    Work hangs = comm.all_reduce(memory.buffer(), ReduceOp::sum, in_stream);
    hangs.wait_on(stream.handle());
    const Work behind = comm.all_reduce(memory.buffer(), ReduceOp::sum, in_stream);
    while (fake_nccl().calls < 4) comm.progress();
    comm.abort("enough");
    EXPECT_EQ(outcome(hangs).code(), Code::aborted);
    EXPECT_EQ(outcome(behind).code(), Code::aborted);
  });
}

// tutti first copies the input of an in-place all_to_all. NCCL's abort does not wait for that copy,
// because NCCL does not know of it.
TEST_P(NcclEnding, AnAbortedCallEndsOnlyWhenItsInputIsNoLongerRead) {
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> memory(comm.rank(), std::vector<float>(4, 1));
    EXPECT_TRUE(sum_on_device(comm, memory).ok());
    together.arrive_and_wait();
    fake_nccl().launch_queries = 1'000'000;  // from here on, NCCL adds no more work to a stream
    DeviceStream blocked(comm.rank());
    std::atomic<bool> go{false};
    blocked.add([](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); }, &go);
    Work work = comm.all_to_all(memory.buffer(), memory.buffer(), {.stream = blocked.handle()});
    together.arrive_and_wait();
    comm.abort("enough");
    EXPECT_FALSE(work.wait_for(milliseconds(50))) << "the copy waits for the blocked stream";
    go = true;
    go.notify_all();
    EXPECT_EQ(outcome(work).code(), Code::aborted);
  });
}

TEST_P(NcclEnding, MemoryIsFreeAfterWaitWhenTheCommunicatorIsAborted) {
  for (int round = 0; round < 5; ++round) {
    Cluster ranks(3, options());
    ranks.run([round](Communicator& comm) {
      std::vector<std::unique_ptr<DeviceArray<float>>> memory;
      std::vector<Work> works;
      for (int i = 0; i < 100; ++i) {
        memory.push_back(std::make_unique<DeviceArray<float>>(comm.rank(), std::vector<float>(5'000, 1)));
        works.push_back(comm.all_reduce(memory.back()->buffer(), ReduceOp::sum));
      }
      if (comm.rank() == round % 3) comm.abort("enough");
      for (std::size_t i = 0; i < works.size(); ++i) {
        static_cast<void>(outcome(works[i]));
        memory[i].reset();  // the fake would crash if it still used the memory
      }
      EXPECT_EQ(outcome(comm.barrier()).code(), Code::aborted);
    });
  }
}

TEST_P(NcclEnding, ACommunicatorIsDestroyedWithCallsInFlight) {
  Cluster ranks(3, options());
  std::barrier together(3);
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    EXPECT_TRUE(sum_on_device(comm, memory).ok());
    together.arrive_and_wait();
    std::vector<std::unique_ptr<DeviceArray<float>>> more;
    std::vector<Work> works;
    for (int i = 0; i < 10; ++i) {
      more.push_back(std::make_unique<DeviceArray<float>>(comm.rank(), std::vector<float>(50'000, 1)));
      works.push_back(comm.all_reduce(more.back()->buffer(), ReduceOp::sum));
    }
    comm = Communicator();
    for (const Work& work : works) EXPECT_TRUE(work.done());
  });
  EXPECT_EQ(fake_nccl().communicators, 0);
}

// --- opening ---

TEST_P(NcclEnding, RanksThatNcclDoesNotConnectTimeOut) {
  fake_nccl().init_queries = 1'000'000;
  fake_nccl().abort_blocks = true;
  Cluster ranks(2, options(milliseconds(400)));
  ranks.run([](Communicator& comm) {
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    const Status late = sum_on_device(comm, memory);
    EXPECT_EQ(late.code(), Code::timeout) << late.to_string();
    EXPECT_THAT(late.message(), testing::AnyOf(HasSubstr("NCCL has not connected the ranks in time"),
                                               HasSubstr("nccl has not completed it")));
  });
  fake_nccl().abort_blocks = false;
}

TEST_P(NcclEnding, ADeviceThatDoesNotExistIsNamed) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    Buffer buffer = memory.buffer();
    if (comm.rank() == 1) buffer.memory = Memory::cuda(99);
    const Status failed = outcome(comm.all_reduce(buffer, ReduceOp::sum));
    EXPECT_EQ(failed.code(), Code::invalid_argument) << failed.to_string();
    EXPECT_EQ(failed.peer(), 1);
    EXPECT_THAT(failed.message(), HasSubstr("there is no CUDA device 99"));
  });
}

// --- the ranks ---

TEST_P(NcclEnding, SurvivorsOpenASessionAnew) {
  for (const int size : {2, 3, 4, 7, 8}) {
    ClusterOptions with_control = options();
    with_control.control = true;
    Cluster ranks(size, with_control);
    std::barrier together(size);
    ranks.run([&](Communicator& comm) {
      DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
      EXPECT_TRUE(sum_on_device(comm, memory).ok());
      together.arrive_and_wait();
      if (comm.rank() == size - 1) {
        comm = Communicator();
        return;
      }
      EXPECT_FALSE(sum_on_device(comm, memory).ok());
      Shrunk shrunk = comm.shrink(1);
      Communicator& rest = shrunk.communicator;
      ASSERT_EQ(rest.size(), size - 1);
      DeviceArray<float> again(comm.rank(), std::vector<float>(3, 1));
      const Status sum = sum_on_device(rest, again);
      EXPECT_TRUE(sum.ok()) << sum.to_string();
      EXPECT_EQ(again.view()[0], static_cast<float>(size - 1));
    });
  }
}

TEST_P(NcclEnding, ARankThatDoesNotMakeTheCallIsNamed) {
  Cluster ranks(3, options(milliseconds(400)));
  std::barrier together(3);
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    EXPECT_TRUE(sum_on_device(comm, memory).ok());
    together.arrive_and_wait();
    if (comm.rank() == 2) return;
    const Status late = sum_on_device(comm, memory);
    EXPECT_EQ(late.code(), Code::timeout) << late.to_string();
    EXPECT_THAT(late.message(), HasSubstr(comm.describe(2)));
  });
}

// --- streams ---

struct Filling {
  std::span<float> elements;
  float value;
};

// Makes the stream fill an array, slowly.
void fill(const DeviceStream& stream, Filling& filling) {
  stream.add(
      [](void* data) {
        const Filling& what = *static_cast<Filling*>(data);
        std::this_thread::sleep_for(milliseconds(2));
        std::ranges::fill(what.elements, what.value);
      },
      &filling);
}

TEST_P(NcclEnding, ACallFollowsItsStreamAndAStreamWaitsForTheCall) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    DeviceStream stream(comm.rank());
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 0));
    DeviceArray<float> result(comm.rank(), std::vector<float>(3, 0));
    for (int i = 1; i <= 20; ++i) {
      Filling filling{memory.view(), static_cast<float>(i)};
      fill(stream, filling);
      Work work = comm.all_reduce(memory.buffer(), ReduceOp::sum, {.stream = stream.handle()});
      work.wait_on(stream.handle());
      const cuda::Api& driver = **cuda::load(TUTTI_FAKE_CUDA);
      const auto address = [](const DeviceArray<float>& of) {
        return reinterpret_cast<cuda::Address>(of.buffer().data);
      };
      EXPECT_EQ(driver.MemcpyAsync(address(result), address(memory), 3 * sizeof(float),
                                   static_cast<cuda::StreamHandle>(stream.handle())),
                cuda::success);
      stream.synchronise();
      EXPECT_EQ(result.view()[0], static_cast<float>(2 * i));
      work.wait();
      work.wait_on(stream.handle());
    }
  });
}

// The call is still in the session's list when the stream begins to wait for the call.
TEST_P(NcclEnding, AStreamWaitsForACallThatHasNotBeenIssued) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    DeviceStream stream(comm.rank());
    std::vector<std::unique_ptr<DeviceArray<float>>> memory;
    std::vector<Work> works;
    for (int i = 0; i < 150; ++i) {
      memory.push_back(std::make_unique<DeviceArray<float>>(comm.rank(), std::vector<float>(3, 1)));
      works.push_back(comm.all_reduce(memory.back()->buffer(), ReduceOp::sum));
    }
    works.back().wait_on(stream.handle());
    stream.synchronise();
    EXPECT_EQ(memory.back()->view()[0], 2.0f);
    for (Work& work : works) work.wait();
  });
}

TEST_P(NcclEnding, AStreamDoesNotWaitForAnAbortedCall) {
  fake_nccl().hang.call = 1;
  fake_nccl().hang.rank = 0;
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    DeviceStream stream(comm.rank());
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 0));
    EXPECT_TRUE(sum_on_device(comm, memory).ok());
    together.arrive_and_wait();
    Work work = comm.all_reduce(memory.buffer(), ReduceOp::sum, {.stream = stream.handle()});
    work.wait_on(stream.handle());
    together.arrive_and_wait();
    comm.abort("enough");
    stream.synchronise();
    EXPECT_EQ(outcome(work).code(), Code::aborted);
    EXPECT_THROW(work.wait_on(stream.handle()), Error);
  });
}

TEST_P(NcclEnding, AStreamThatIsBeingCapturedIsRefusedAndTheCaptureRemainsValid) {
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    DeviceStream captured(comm.rank());
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    EXPECT_TRUE(sum_on_device(comm, memory).ok());
    captured.begin_capture();
    if (comm.rank() == 0) {  // a refused call does not count, so the other rank need not make it
      const Status refused = sum_on_device(comm, memory, {.stream = captured.handle()});
      EXPECT_EQ(refused.code(), Code::unsupported) << refused.to_string();
      EXPECT_THAT(refused.message(), HasSubstr("the stream is being captured into a graph"));
    }
    EXPECT_TRUE(comm.status().ok());
    // Other calls continue during the capture.
    EXPECT_TRUE(sum_on_device(comm, memory).ok());
    Work work = comm.all_reduce(memory.buffer(), ReduceOp::sum);
    try {
      work.wait_on(captured.handle());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unsupported) << error.what();
    }
    work.wait();
    EXPECT_TRUE(captured.end_capture());
    // A rank keeps its stream until the other rank's capture has ended, too: the destructor of a stream
    // synchronises, which any capture in the process forbids.
    together.arrive_and_wait();
    EXPECT_EQ(memory.view()[0], 8.0f);
  });
}

// --- registered memory ---

TEST_P(NcclEnding, DeviceMemoryIsRegisteredWithEachCommunicator) {
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> early(comm.rank(), std::vector<float>(3, 1)),
        late(comm.rank(), std::vector<float>(3, 1));
    const auto bytes = [](const DeviceArray<float>& of) {
      return std::span(static_cast<std::byte*>(of.buffer().data), of.buffer().bytes());
    };
    std::vector<float> here(3);
    const auto on_host = comm.register_memory(std::as_writable_bytes(std::span(here)));
    std::optional<Registration> first = comm.register_memory(bytes(early));
    Communicator other = std::move(*comm.split(0));
    EXPECT_TRUE(sum_on_device(comm, early).ok());
    EXPECT_TRUE(sum_on_device(other, early).ok());
    together.arrive_and_wait();
    EXPECT_EQ(fake_nccl().registrations, 2 * 2);
    const Registration second = comm.register_memory(bytes(late));
    together.arrive_and_wait();
    EXPECT_TRUE(sum_on_device(comm, late).ok());
    together.arrive_and_wait();
    EXPECT_EQ(fake_nccl().registrations, 3 * 2);
    together.arrive_and_wait();
    first.reset();
    together.arrive_and_wait();
    EXPECT_EQ(fake_nccl().registrations, 2 * 2) << "the second region is now known to both communicators";
    together.arrive_and_wait();
  });
}

INSTANTIATE_TEST_SUITE_P(, NcclEnding, testing::Values(0, 2), [](const auto& parameter) {
  return parameter.param == 0 ? std::string("at_once") : "in_progress_" + std::to_string(parameter.param);
});

}  // namespace
}  // namespace tutti::test
