// Tests how a communicator ends, and how the other ranks notice its end.

#include <atomic>
#include <deque>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/conformance/on_each_transport.h"
#include "tests/support/poisoned.h"

namespace tutti::test {
namespace {

class CommunicatorEnding : public OnEachTransport {};

TEST_P(CommunicatorEnding, AbortEndsEveryWait) {
  Cluster ranks(3, options());
  ranks.run([](Communicator& comm) {
    comm.barrier().wait();
    // This makes rank 2 abort only after every rank has left the barrier.
    std::vector<std::int32_t> there(2);
    if (comm.rank() == 2) {
      comm.recv(std::span(there).first(1), 0).wait();
      comm.recv(std::span(there).last(1), 1).wait();
    } else {
      comm.send(std::span(there).first(1), 2);
    }
    std::vector<float> data(4, 1.0f);
    if (comm.rank() == 2) {
      comm.abort("enough");
      EXPECT_EQ(outcome(comm.barrier()).code(), Code::aborted);
      return;
    }
    const Status status = outcome(comm.all_reduce(data, ReduceOp::sum));
    EXPECT_EQ(status.code(), Code::aborted) << status.to_string();
    EXPECT_TRUE(contains(status.message(), "enough")) << status.message();
    EXPECT_TRUE(contains(status.message(), "rank 2")) << status.message();
  });
}

TEST_P(CommunicatorEnding, DestroyedWithOperationsInFlight) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    std::vector<float> data(1'000'000, 1.0f);
    if (comm.rank() == 0) {
      Work work = comm.all_reduce(data, ReduceOp::sum);
      comm = Communicator();
      EXPECT_TRUE(work.done());
      EXPECT_EQ(work.status().code(), Code::aborted);
    } else {
      const Status status = outcome(comm.recv(data, 0));
      EXPECT_EQ(status.code(), Code::aborted) << status.to_string();
      EXPECT_EQ(status.peer(), 0) << status.to_string();
    }
  });
}

// The operation's memory is not used after `wait` has returned or thrown.
TEST_P(CommunicatorEnding, MemoryIsFreeAfterWait) {
  constexpr std::size_t operations = 20;
  Cluster ranks(3, options());
  ranks.run([](Communicator& comm) {
    std::deque<std::vector<float>> data;
    std::vector<Work> works;
    for (std::size_t i = 0; i < operations; ++i) {
      auto& mine = data.emplace_back(200'000, 1.0f);
      works.push_back(comm.all_reduce(mine, ReduceOp::sum));
    }
    if (comm.rank() == 1) comm.abort("enough");
    std::deque<Poisoned> untouchable;
    for (std::size_t i = 0; i < operations; ++i) {
      static_cast<void>(outcome(works[i]));
      untouchable.emplace_back(std::as_bytes(std::span(data[i])));
    }
    EXPECT_EQ(outcome(comm.barrier()).code(), Code::aborted);
    comm = Communicator();
  });
}

TEST_P(CommunicatorEnding, AnExceptionIsToldToTheOthers) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    std::vector<float> data(4);
    comm.all_reduce(data, ReduceOp::sum).wait();
    // This makes rank 0 leave only after rank 1 has also got its result.
    (comm.rank() == 0 ? comm.recv(data, 1) : comm.send(data, 0)).wait();
    if (comm.rank() == 0) {
      try {
        const Communicator unwound = std::move(comm);
        throw std::runtime_error("out of paper");
      } catch (const std::runtime_error&) {
      }
    } else {
      const Status status = outcome(comm.all_reduce(data, ReduceOp::sum));
      EXPECT_EQ(status.code(), Code::aborted) << status.to_string();
      EXPECT_TRUE(contains(status.message(),
                           "rank 0 (host test, pid 1000) left the communicator because of an exception"))
          << status.message();
      EXPECT_EQ(status.peer(), 0);
    }
  });
}

TEST_P(CommunicatorEnding, DestroyedInsideACallback) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    std::vector<float> data(4, 1.0f);
    std::atomic<bool> gone{false};
    auto last_handle = std::make_shared<Communicator>(std::move(comm));
    Work work = last_handle->all_reduce(data, ReduceOp::sum);
    work.then([&gone, last_handle = std::move(last_handle)](const Status&) mutable {
      last_handle.reset();
      gone = true;
    });
    work.wait();
    while (!gone) std::this_thread::yield();
  });
}

// The two ranks have no connection that could break. So the waiting rank must notice in another way
// that its peer has left.
TEST(CommunicatorTcp, APeerThatLeftBeforeItConnectedIsMissed) {
  Cluster ranks(2, {.transport = "tcp"});
  ranks.run([](Communicator& comm) {
    if (comm.rank() == 0) {
      comm = Communicator();
    } else {
      std::vector<float> data(4);
      const Status status = outcome(comm.recv(data, 0));
      EXPECT_FALSE(status.ok());
      EXPECT_NE(status.code(), Code::timeout) << status.to_string();
      EXPECT_TRUE(contains(status.message(), "rank 0 (host test, pid 1000)")) << status.message();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorEnding, testing::ValuesIn(all_connections()), name_of_transport);

}  // namespace
}  // namespace tutti::test
