// Tests how ranks wait for operations: with deadlines, by callbacks and by calls of `progress`.

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <poll.h>

#include "tests/conformance/on_each_transport.h"

namespace tutti::test {
namespace {

class CommunicatorWaiting : public OnEachTransport {};

TEST_P(CommunicatorWaiting, ATimeoutNamesWhoIsMissingAndAborts) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    std::vector<float> data(4, 1.0f);
    if (comm.rank() == 0) {
      const Status status =
          outcome(comm.all_reduce(data, ReduceOp::sum, {.timeout = std::chrono::milliseconds(200)}));
      EXPECT_EQ(status.code(), Code::timeout) << status.to_string();
      EXPECT_TRUE(contains(status.message(), "rank 1 (host test, pid 1001)")) << status.message();
      EXPECT_TRUE(contains(status.message(), "all_reduce(")) << status.message();
      EXPECT_EQ(outcome(comm.barrier()).code(), Code::timeout);
    } else {
      // Rank 0 has already sent all data for this rank's all_reduce, which must still fail.
      for (int i = 0; i < 60'000 && comm.status().ok(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(outcome(comm.all_reduce(data, ReduceOp::sum)).code(), Code::timeout);
    }
  });
}

TEST_P(CommunicatorWaiting, WaitForOnlyReturns) {
  Cluster ranks(2, options());
  std::atomic<bool> go{false};
  ranks.run([&](Communicator& comm) {
    std::vector<float> data(4, 1.0f);
    if (comm.rank() == 0) {
      Work work = comm.all_reduce(data, ReduceOp::sum);
      EXPECT_FALSE(work.wait_for(std::chrono::milliseconds(20)));
      EXPECT_FALSE(work.done());
      go = true;
      work.wait();
    } else {
      while (!go) std::this_thread::yield();
      comm.all_reduce(data, ReduceOp::sum).wait();
    }
    EXPECT_EQ(data[0], 2.0f);
  });
}

TEST_P(CommunicatorWaiting, CallbacksRunOnceAndMustNotWait) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    std::vector<float> data(4, 1.0f);
    std::atomic<int> calls{0};
    std::atomic<bool> refused{false};
    Work first = comm.all_reduce(data, ReduceOp::sum);
    std::vector<float> more(4, 1.0f);
    Work second;
    std::atomic<bool> issued{false};
    first.then([&](const Status& status) {
      EXPECT_TRUE(status.ok());
      ++calls;
      second = comm.all_reduce(more, ReduceOp::sum);
      try {
        second.wait();
      } catch (const Error& error) {
        refused = error.code() == Code::invalid_argument;
      }
      issued = true;
    });
    first.wait();
    while (!issued) std::this_thread::yield();
    second.wait();
    EXPECT_EQ(more[0], 2.0f);
    EXPECT_EQ(calls, 1);
    int late = 0;
    first.then([&](const Status&) { ++late; });
    EXPECT_EQ(late, 1);
  });
}

TEST_P(CommunicatorWaiting, WhatACallbackThrowsHarmsNobody) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    for (int i = 0; i < 5; ++i) {
      std::vector<std::int64_t> sum(i % 2 == 0 ? 1 : 10'000, 1);
      Work work = comm.all_reduce(sum, ReduceOp::sum);
      std::atomic<int> called{0};
      work.then([&](const Status&) {
        ++called;
        throw std::runtime_error("out of a callback");
      });
      work.then([&](const Status&) { ++called; });
      work.wait();
      while (called != 2) std::this_thread::yield();
      EXPECT_EQ(sum.back(), 2);
      EXPECT_NO_THROW(Work().then([](const Status&) { throw 1; }));
    }
    EXPECT_TRUE(comm.status().ok());
  });
}

TEST_P(CommunicatorWaiting, ACallbackMayAskForStatistics) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    std::vector<float> data(100'000, 1.0f);
    std::atomic<std::uint64_t> operations{0};
    Work work = comm.all_reduce(data, ReduceOp::sum);
    work.then([&](const Status&) { operations = comm.statistics().operations; });
    work.wait();
    for (int i = 0; i < 60'000 && operations == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(operations, comm.statistics().operations);
  });
}

TEST_P(CommunicatorWaiting, NobodyWaitsAndItStillProgresses) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    std::vector<float> data(100'000, 1.0f);
    std::atomic<bool> over{false};
    Work work = comm.all_reduce(data, ReduceOp::sum);
    work.then([&](const Status&) { over = true; });
    for (int i = 0; i < 60'000 && !over; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(over);
    EXPECT_TRUE(work.done());
    EXPECT_EQ(data[99'999], 2.0f);
  });
}

// A program's event loop sleeps on `descriptor()`. The news that another rank has aborted may
// arrive as the last event of one pass of the driver. In that case the descriptor must be readable
// until this rank has ended its operations.
TEST_P(CommunicatorWaiting, AnEventLoopIsWokenToActOnAnAbort) {
  ClusterOptions without_background = options();
  without_background.driver.background = false;
  Cluster ranks(2, without_background);
  std::atomic<bool> posted{false};
  ranks.run([&](Communicator& comm) {
    std::uint8_t byte[1] = {};
    if (comm.rank() == 0) {
      comm.send(byte, 1).wait();
      while (!posted) std::this_thread::yield();
      comm.abort("enough");
    } else {
      comm.recv(byte, 0).wait();
      Work never_sent = comm.recv(byte, 0);
      // After these calls, tcp reads only when the kernel reports data.
      for (int i = 0; i < 1000; ++i) comm.progress();
      posted = true;
      while (!never_sent.done()) {
        pollfd ready{comm.descriptor(), POLLIN, 0};
        ASSERT_EQ(poll(&ready, 1, 20'000), 1) << comm.status().to_string();
        comm.progress();
      }
      EXPECT_EQ(outcome(never_sent).code(), Code::aborted);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorWaiting, testing::ValuesIn(all_connections()), name_of_transport);

}  // namespace
}  // namespace tutti::test
