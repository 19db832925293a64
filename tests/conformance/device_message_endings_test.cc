// Tests how messages in the memory of CUDA devices fail and are given up (docs/seams/memory.md), with the
// fake CUDA.

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/device_messages.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using testing::Each;
using testing::HasSubstr;

constexpr cuda::Outcome broken_address = 700;

class DeviceMessageEndings : public DeviceMessagesOnEachTransport {
 protected:
  // Runs `body` on both ranks after first messages have made the copiers of device 0.
  template <class Body>
  void run_open(const ClusterOptions& options, const Body& body) {
    Cluster ranks(2, options);
    ranks.run([&](Communicator& comm) {
      const IntArray data(0, std::vector<int>(10, 1));
      exchange_with_itself(comm, data);
      comm.barrier({.timeout = std::chrono::seconds(120)}).wait();
      meet();
      body(comm);
    });
  }
  static void exchange_with_itself(Communicator& comm, const IntArray& data) {
    comm.batch(std::array{Transfer{Transfer::Direction::recv, data.buffer(), comm.rank(), 99},
                          Transfer{Transfer::Direction::send, data.buffer(), comm.rank(), 99}},
               {.timeout = std::chrono::seconds(120)})
        .wait();
  }
  void meet() { together_.arrive_and_wait(); }

 private:
  std::barrier<> together_{2};
};

TEST_P(DeviceMessageEndings, ADeviceThatDoesNotExistIsRefusedAtOnce) {
  run_open(options(), [](Communicator& comm) {
    const IntArray data(0, {comm.rank()});
    Buffer nowhere = data.buffer();
    nowhere.memory = Memory::cuda(7);
    const Work refused = comm.send(nowhere, 1 - comm.rank(), 1);
    EXPECT_TRUE(refused.done());
    EXPECT_EQ(refused.status().code(), Code::invalid_argument);
    EXPECT_THAT(refused.status().message(), HasSubstr("there is no CUDA device 7: the driver finds 2"));
    const Work batch = comm.batch(std::array{Transfer{Transfer::Direction::recv, data.buffer(), any_rank, 1},
                                             Transfer{Transfer::Direction::recv, nowhere, any_rank, 2}});
    EXPECT_EQ(batch.status().code(), Code::invalid_argument);
    Work receive = comm.recv(data.buffer(), 1 - comm.rank(), 1);
    int mine = comm.rank();
    comm.send(std::span(&mine, 1), 1 - comm.rank(), 1).wait();
    receive.wait();
    EXPECT_THAT(data.values(), Each(1 - comm.rank()));
  });
}

TEST_P(DeviceMessageEndings, WithoutADeviceMessagesAreUnsupported) {
  fake_cuda_reset(0);
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    const Buffer nowhere(nullptr, 0, DataType::int32, Memory::cuda(0));
    const Work refused = comm.send(nowhere, 1 - comm.rank());
    EXPECT_TRUE(refused.done());
    EXPECT_EQ(refused.status().code(), Code::unsupported);
    EXPECT_THAT(refused.status().message(), HasSubstr("staged: cuInit: CUDA_ERROR_NO_DEVICE"));
    EXPECT_TRUE(outcome(comm.barrier()).ok());
  });
}

TEST_P(DeviceMessageEndings, ACopierThatCannotBeMadeLeavesNothingBehind) {
  for (const char* const function : {"cuMemHostAlloc", "cuStreamCreate", "cuEventCreate"}) {
    Cluster ranks(1, options());
    ranks.run([&](Communicator& comm) {
      const IntArray data(0, {1});
      fake_cuda_fail(function, 1, cuda::out_of_memory);
      const Work refused = comm.send(data.buffer(), 0);
      EXPECT_TRUE(refused.done());
      EXPECT_EQ(refused.status().code(), Code::resource_exhausted);
      EXPECT_THAT(refused.status().message(),
                  HasSubstr(std::string(function) + ": CUDA_ERROR_OUT_OF_MEMORY"));
      EXPECT_TRUE(comm.status().ok());
      exchange_with_itself(comm, data);
    });
  }
}

// The driver fails on rank 0. The peer waits for a message of rank 0, or rank 0 for one of its own.
TEST_P(DeviceMessageEndings, ACopyThatFailsFailsTheCommunicatorOnAllRanks) {
  for (const char* const function : {"cuMemcpyAsync", "cuEventRecord", "cuEventQuery"}) {
    for (const int n : {1, 3, 9}) {
      for (const bool sends : {true, false}) {
        run_open(options(), [&](Communicator& comm) {
          const IntArray data(0, std::vector<int>(300, 1));
          std::vector<int> here(300, 2);
          meet();
          Work work;
          if (comm.rank() == 0) {
            fake_cuda_fail(function, n, broken_address);
            work = sends ? comm.send(data.buffer(), 1) : comm.recv(data.buffer(), 1);
          } else {
            work = sends ? comm.recv(here, 0) : comm.send(here, 0);
          }
          const Status ended = outcome(work);
          if (comm.rank() == 0 || sends) {
            EXPECT_EQ(ended.code(), Code::aborted) << ended.to_string();
          }
          const Status failed = outcome(comm.barrier());
          EXPECT_EQ(failed.code(), Code::aborted) << failed.to_string();
          EXPECT_EQ(failed.peer(), 0);
          EXPECT_THAT(failed.message(), HasSubstr(comm.describe(0) + ": CUDA device 0: " + function +
                                                  ": CUDA_ERROR_ILLEGAL_ADDRESS"));
        });
        fake_cuda_reset(2);
      }
    }
  }
}

TEST_P(DeviceMessageEndings, ABrokenDeviceFailsTheCommunicatorOnAllRanks) {
  run_open(options(), [&](Communicator& comm) {
    const IntArray data(0, std::vector<int>(300, 1));
    comm.barrier().wait();
    if (comm.rank() == 0) {
      fake_cuda_break(broken_address);
      EXPECT_EQ(outcome(comm.send(data.buffer(), 1)).code(), Code::aborted);
    }
    std::vector<int> here(300);
    const Status failed = outcome(comm.recv(here, any_rank, 1234));
    EXPECT_EQ(failed.code(), Code::aborted) << failed.to_string();
    EXPECT_EQ(failed.peer(), 0);
    EXPECT_THAT(failed.message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  });
  fake_cuda_reset(2);
}

// The test frees the arrays as soon as their messages have ended. A copy that still ran would access freed
// memory, and the process would crash.
TEST_P(DeviceMessageEndings, NoCopyRunsAfterAMessageHasEnded) {
  for (int round = 0; round < 10; ++round) {
    fake_cuda_slow_copies(300);
    run_open(options(), [&](Communicator& comm) {
      std::vector<std::unique_ptr<IntArray>> data;
      std::vector<Work> works;
      for (int i = 0; i < 10; ++i) {
        for (const bool sends : {true, false}) {
          data.push_back(std::make_unique<IntArray>(0, std::vector<int>(60, 1)));
          const Buffer buffer = data.back()->buffer();
          const int peer = 1 - comm.rank();
          works.push_back(sends ? comm.send(buffer, peer) : comm.recv(buffer, peer));
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds(400 * round));
      if (comm.rank() == round % 2) comm.abort("enough");
      for (std::size_t i = 0; i < works.size(); ++i) {
        static_cast<void>(outcome(works[i]));
        data[i].reset();
      }
      EXPECT_EQ(outcome(comm.barrier()).code(), Code::aborted);
      comm = Communicator();
    });
  }
}

// While a copy is held back, an aborted message has not ended. This holds for both directions.
TEST_P(DeviceMessageEndings, AMessageThatIsGivenUpEndsAfterItsCopy) {
  run_open(options(), [&](Communicator& comm) {
    const IntArray out(0, std::vector<int>(300, comm.rank())), in(0, std::vector<int>(300, -1));
    std::vector<int> here(300, 5);
    Work arrives = comm.recv(in.buffer(), 1 - comm.rank(), 1);
    meet();
    fake_cuda_hold_copies(true);
    meet();
    Work leaves = comm.send(out.buffer(), 1 - comm.rank(), 2);
    EXPECT_FALSE(leaves.wait_for(milliseconds(20)));
    meet();
    comm.abort("enough");
    EXPECT_EQ(outcome(comm.barrier()).code(), Code::aborted);
    EXPECT_FALSE(leaves.done());
    meet();
    fake_cuda_hold_copies(false);
    EXPECT_EQ(outcome(leaves).code(), Code::aborted);
    EXPECT_EQ(outcome(arrives).code(), Code::aborted);
    EXPECT_THAT(in.values(), Each(-1));
  });
}

TEST_P(DeviceMessageEndings, AReceiveThatIsGivenUpEndsAfterItsCopy) {
  run_open(options(), [&](Communicator& comm) {
    if (comm.rank() == 0) {
      const IntArray in(0, std::vector<int>(300, -1));
      fake_cuda_hold_copies(true);
      Work receive = comm.recv(in.buffer(), 1, 1);
      meet();
      EXPECT_FALSE(receive.wait_for(milliseconds(50)));
      comm.abort("enough");
      EXPECT_EQ(outcome(comm.barrier()).code(), Code::aborted);
      EXPECT_FALSE(receive.done());
      fake_cuda_hold_copies(false);
      EXPECT_EQ(outcome(receive).code(), Code::aborted);
    } else {
      std::vector<int> here(300, 5);
      meet();
      static_cast<void>(outcome(comm.send(here, 0, 1)));
    }
  });
}

TEST_P(DeviceMessageEndings, ACopyThatTakesTooLongNamesItsDevice) {
  ClusterOptions with_limit = options();
  with_limit.timeout = milliseconds(300);
  run_open(with_limit, [&](Communicator& comm) {
    if (comm.rank() != 0) return;
    const IntArray data(0, std::vector<int>(300, 1));
    fake_cuda_hold_copies(true);
    Work late = comm.send(data.buffer(), 1);
    while (comm.status().ok()) late.wait_for(milliseconds(10));
    fake_cuda_hold_copies(false);
    const Status failed = outcome(late);
    EXPECT_EQ(failed.code(), Code::timeout) << failed.to_string();
    EXPECT_THAT(failed.message(), HasSubstr("; CUDA device 0 has not completed it"));
  });
}

TEST_P(DeviceMessageEndings, AStreamDoesNotWaitForEverForAMessageThatIsGivenUp) {
  run_open(options(), [&](Communicator& comm) {
    const IntArray data(0, {1});
    const std::unique_ptr<cuda::Stream> stream = new_stream(data);
    Work never = comm.recv(data.buffer(), 1 - comm.rank(), 17);
    never.wait_on(stream->handle());
    meet();
    comm.abort("enough");
    EXPECT_EQ(data.device().api().StreamSynchronize(stream->handle()), cuda::success);
    EXPECT_EQ(outcome(never).code(), Code::aborted);
    EXPECT_THROW(never.wait_on(stream->handle()), Error);
  });
}

// A message that waits for its stream ends at once.
TEST_P(DeviceMessageEndings, AnAbortDoesNotWaitForTheStreamThatAMessageFollows) {
  run_open(options(), [&](Communicator& comm) {
    const IntArray data(0, {1});
    const std::unique_ptr<cuda::Stream> stream = new_stream(data);
    std::atomic<bool> may_go{false};
    const auto wait = [](void* flag) {
      while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
    };
    ASSERT_EQ(cuLaunchHostFunc(stream->handle(), wait, &may_go), cuda::success);
    Work first = comm.send(data.buffer(), 1 - comm.rank(), 1, {.stream = stream->handle()});
    Work second = comm.send(data.buffer(), 1 - comm.rank(), 1);
    EXPECT_FALSE(first.wait_for(milliseconds(20)));
    EXPECT_FALSE(second.done());
    meet();
    comm.abort("enough");
    EXPECT_EQ(outcome(first).code(), Code::aborted);
    EXPECT_EQ(outcome(second).code(), Code::aborted);
    may_go = true;
    EXPECT_EQ(data.device().api().StreamSynchronize(stream->handle()), cuda::success);
  });
}

TEST_P(DeviceMessageEndings, ACommunicatorIsDestroyedWithMessagesInFlight) {
  run_open(options(), [&](Communicator& comm) {
    const IntArray out(0, std::vector<int>(300, 1)), in(0, std::vector<int>(300, 1));
    std::vector<Work> works;
    for (int i = 0; i < 5; ++i) {
      works.push_back(comm.send(out.buffer(), 1 - comm.rank(), 3));
      works.push_back(comm.recv(in.buffer(), 1 - comm.rank(), 4));
    }
    comm = Communicator();
    for (const Work& work : works) EXPECT_TRUE(work.done());
  });
}

TEST_P(DeviceMessageEndings, TheFirstMessageInACallbackIsAnInvalidArgument) {
  Cluster ranks(1, options());
  ranks.run([](Communicator& comm) {
    const IntArray data(0, {1});
    Work inside;
    int here = 3;
    Work receive = comm.recv(std::span(&here, 1), 0, 1);
    receive.then([&](const Status&) { inside = comm.send(data.buffer(), 0, 2); });
    comm.send(std::span(&here, 1), 0, 1).wait();
    receive.wait();
    EXPECT_EQ(outcome(inside).code(), Code::invalid_argument);
    EXPECT_THAT(inside.status().message(), HasSubstr("inside a `then` callback"));
    exchange_with_itself(comm, data);
    Work again = comm.recv(std::span(&here, 1), 0, 1);
    again.then([&](const Status&) { inside = comm.send(data.buffer(), 0, 2); });
    comm.send(std::span(&here, 1), 0, 1).wait();
    comm.recv(data.buffer(), 0, 2).wait();
    EXPECT_TRUE(outcome(inside).ok());
  });
}

INSTANTIATE_TEST_SUITE_P(All, DeviceMessageEndings, testing::ValuesIn(all_transports()), name_of_transport);

}  // namespace
}  // namespace tutti::test
