// Tests how calls of an offload library end: with errors, with aborts, and when they follow streams
// (docs/seams/offload.md).

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <deque>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/on_each_transport.h"
#include "tests/support/poisoned.h"
#include "tests/support/reference_offload.h"
#include "tests/support/toy_stream.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Buffer device_buffer(std::vector<float>& elements) {
  Buffer buffer(elements);
  buffer.memory = Memory::cuda(0);
  return buffer;
}

Work device_sum(Communicator& comm, std::vector<float>& data, const CallOptions& options = {}) {
  return comm.all_reduce(device_buffer(data), ReduceOp::sum, options);
}

// The parameter is the number of polls after which the library reports the end of a call. With 0,
// the library reports from its own thread.
class OffloadEnding : public testing::TestWithParam<unsigned> {
 protected:
  std::shared_ptr<ReferenceLibrary> library(ReferenceOptions options = {}) {
    options.polls = GetParam();
    return std::make_shared<ReferenceLibrary>(std::move(options));
  }
  static ClusterOptions with(const std::shared_ptr<ReferenceLibrary>& library,
                             std::chrono::nanoseconds timeout = std::chrono::seconds(120)) {
    return {.timeout = timeout, .offloads = reference_offloads(library)};
  }
};

TEST_P(OffloadEnding, AnErrorOnOneRankFailsTheCommunicatorOnAll) {
  const auto fails = [](int rank, std::uint64_t call) {
    return rank == 1 && call == 2 ? Status(Code::aborted, "an uncorrectable error") : Status();
  };
  Cluster ranks(3, with(library({.fails = fails})));
  std::barrier together(3);
  ranks.run([&](Communicator& comm) {
    std::vector<float> data(3, 1);
    EXPECT_TRUE(outcome(device_sum(comm, data)).ok());
    EXPECT_TRUE(outcome(device_sum(comm, data)).ok());
    together.arrive_and_wait();
    for (int i = 0; i < 2; ++i) {
      const Status failed = outcome(device_sum(comm, data));
      EXPECT_EQ(failed.code(), Code::aborted) << failed.to_string();
      EXPECT_EQ(failed.peer(), 1);
      EXPECT_THAT(failed.message(), HasSubstr(comm.describe(1) + ": reference: an uncorrectable error"));
    }
  });
}

// A refused call does not count. If it counted, the next call of rank 1 would be matched with a later call of
// the other ranks.
TEST_P(OffloadEnding, ACallThatOneRankRefusesCanBeMadeAgain) {
  int stream = 0;
  const auto follows = [&](int rank, void* given) {
    return rank == 1 && given == &stream ? Status(Code::unsupported, "not this stream") : Status();
  };
  Cluster ranks(3, with(library({.follows = follows})));
  ranks.run([&](Communicator& comm) {
    std::vector<float> data(3, 1);
    for (int i = 0; i < 2; ++i) {  // the first call opens the session
      if (comm.rank() == 1) {
        const Status refused = outcome(device_sum(comm, data, {.stream = &stream}));
        EXPECT_EQ(refused.code(), Code::unsupported) << refused.to_string();
        EXPECT_THAT(refused.message(), HasSubstr("not this stream"));
      }
      EXPECT_TRUE(outcome(device_sum(comm, data)).ok());
    }
    EXPECT_EQ(data, std::vector<float>(3, 9));
    EXPECT_TRUE(comm.status().ok());
  });
}

TEST_P(OffloadEnding, ACallThatTheLibraryNeverEndsTimesOutAndNamesTheLibrary) {
  const auto hangs = [](int rank, std::uint64_t call) { return rank == 1 && call == 1; };
  Cluster ranks(3, with(library({.hangs = hangs}), milliseconds(400)));
  ranks.run([](Communicator& comm) {
    std::vector<float> data(3, 1);
    EXPECT_TRUE(outcome(device_sum(comm, data)).ok());
    const Status late = outcome(device_sum(comm, data));
    EXPECT_EQ(late.code(), Code::timeout) << late.to_string();
    EXPECT_THAT(late.message(), HasSubstr("was not over in time; reference has not completed it"));
  });
}

TEST_P(OffloadEnding, MemoryIsFreeAfterWaitWhenTheCommunicatorIsAborted) {
  for (int round = 0; round < 10; ++round) {
    Cluster ranks(3, with(library({.pause = std::chrono::microseconds(100 * round)})));
    ranks.run([round](Communicator& comm) {
      std::deque<std::vector<float>> data;
      std::vector<Work> works;
      for (int i = 0; i < 20; ++i) works.push_back(device_sum(comm, data.emplace_back(50'000, 1.0f)));
      if (comm.rank() == round % 3) comm.abort("enough");
      std::deque<Poisoned> untouchable;
      for (std::size_t i = 0; i < works.size(); ++i) {
        static_cast<void>(outcome(works[i]));
        untouchable.emplace_back(std::as_bytes(std::span(data[i])));
      }
      EXPECT_EQ(outcome(comm.barrier()).code(), Code::aborted);
      comm = Communicator();
    });
  }
}

TEST_P(OffloadEnding, ACommunicatorIsDestroyedWithCallsInFlight) {
  const std::shared_ptr<ReferenceLibrary> counted = library({.pause = milliseconds(2)});
  Cluster ranks(3, with(counted));
  std::barrier together(3);
  ranks.run([&](Communicator& comm) {
    std::vector<float> data(1000, 1);
    EXPECT_TRUE(outcome(device_sum(comm, data)).ok());
    together.arrive_and_wait();
    std::deque<std::vector<float>> more(10, std::vector<float>(1000));
    std::vector<Work> works;
    for (std::vector<float>& each : more) works.push_back(device_sum(comm, each));
    comm = Communicator();
    for (const Work& work : works) EXPECT_TRUE(work.done());
    EXPECT_EQ(works.back().status().code(), Code::aborted);
  });
  EXPECT_EQ(counted->sessions, 0);
}

// A callback destroys the communicator on the driving thread, which leaves the teardown to another thread.
TEST_P(OffloadEnding, ACommunicatorIsDestroyedInsideACallback) {
  const std::shared_ptr<ReferenceLibrary> counted = library();
  {
    Cluster ranks(2, with(counted));
    ranks.run([](Communicator& comm) {
      std::vector<float> data(3, 1);
      EXPECT_TRUE(outcome(device_sum(comm, data)).ok());
      auto last = std::make_shared<Communicator>(std::move(*comm.split(0)));
      std::atomic<bool> gone{false};
      Work work = device_sum(*last, data);
      work.then([&gone, last = std::move(last)](const Status&) mutable {
        last.reset();
        gone = true;
      });
      while (!gone) comm.progress();
      comm.barrier().wait();
    });
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (counted->sessions != 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(counted->sessions, 0);
}

// Collectives match by the order of issue. So the two threads of a rank issue their calls in turns,
// but may wait at the same time.
TEST_P(OffloadEnding, TwoThreadsIssueInTurns) {
  Cluster ranks(3, with(library()));
  ranks.run([](Communicator& comm) {
    std::atomic<int> turn{0};
    const auto issue = [&](int mine) {
      for (int i = mine; i < 200; i += 2) {
        while (turn != i) std::this_thread::yield();
        std::vector<float> data(3, static_cast<float>(i));
        Work work = device_sum(comm, data);
        turn = i + 1;
        EXPECT_TRUE(outcome(work).ok());
        EXPECT_EQ(data[1], static_cast<float>(3 * i));
      }
    };
    std::thread other(issue, 1);
    issue(0);
    other.join();
  });
}

// Either of the two threads may make the first call. Their calls are equal, so their order does not matter.
TEST_P(OffloadEnding, TwoThreadsMakeTheFirstCall) {
  for (int round = 0; round < 20; ++round) {
    const std::shared_ptr<ReferenceLibrary> counted = library();
    Cluster ranks(2, with(counted));
    ranks.run([](Communicator& comm) {
      std::mutex order;  // one thread issues at a time
      const auto call = [&] {
        std::vector<float> data(3, 1);
        Work work;
        {
          const std::lock_guard lock(order);
          work = device_sum(comm, data);
        }
        EXPECT_TRUE(outcome(work).ok());
        EXPECT_EQ(data[2], 2.0f);
      };
      std::thread other(call);
      call();
      other.join();
    });
    EXPECT_EQ(counted->sessions_opened, 2);
  }
}

TEST_P(OffloadEnding, ACallFollowsItsStreamAndAStreamWaitsForTheCall) {
  Cluster ranks(2, with(library({.pause = milliseconds(5)})));
  ranks.run([](Communicator& comm) {
    ToyStream stream;
    std::vector<float> data(3, 0);
    float seen = 0;
    for (int i = 1; i <= 20; ++i) {
      stream.add([&] {
        std::this_thread::sleep_for(milliseconds(2));
        data.assign(3, static_cast<float>(i));
      });
      Work work = device_sum(comm, data, {.stream = &stream});
      work.wait_on(&stream);
      stream.add([&] { seen = data[0]; });
      stream.record()->wait();
      EXPECT_EQ(seen, static_cast<float>(2 * i));
      work.wait();
      work.wait_on(&stream);
    }
  });
}

TEST_P(OffloadEnding, AStreamDoesNotWaitForAnAbortedCall) {
  const auto hangs = [](int, std::uint64_t call) { return call == 1; };
  Cluster ranks(2, with(library({.hangs = hangs})));
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    ToyStream stream;
    std::vector<float> data(3, 0);
    EXPECT_TRUE(outcome(device_sum(comm, data)).ok());
    together.arrive_and_wait();
    Work work = device_sum(comm, data, {.stream = &stream});
    work.wait_on(&stream);
    together.arrive_and_wait();
    comm.abort("enough");
    stream.record()->wait();
    EXPECT_EQ(outcome(work).code(), Code::aborted);
    EXPECT_THROW(work.wait_on(&stream), Error);
  });
}

// The first call fails, so no session is ever opened. The stream must not wait forever for such a call.
TEST_P(OffloadEnding, AStreamWaitsForAFirstCallThatFails) {
  for (int round = 0; round < 20; ++round) {
    Cluster ranks(2, with(library()));
    ranks.run([](Communicator& comm) {
      ToyStream stream;
      std::vector<float> data(3, 0);
      const ReduceOp& op = comm.rank() == 0 ? ReduceOp::sum : ReduceOp::max;
      Work work = comm.all_reduce(device_buffer(data), op, {.stream = &stream});
      try {
        work.wait_on(&stream);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::mismatch) << error.what();
      }
      stream.record()->wait();
      EXPECT_EQ(outcome(work).code(), Code::mismatch);
    });
  }
}

TEST_P(OffloadEnding, AnExceptionWhileASessionIsOpenedFailsTheCommunicator) {
  const auto throws = [](OffloadPeers& peers) -> Status {
    if (peers.rank() == 1) throw std::runtime_error("no thread is left");
    return Status();
  };
  Cluster ranks(2, with(library({.opening = throws})));
  ranks.run([](Communicator& comm) {
    std::vector<float> data(3, 0);
    const Status failed = outcome(device_sum(comm, data));
    EXPECT_EQ(failed.code(), Code::internal) << failed.to_string();
    EXPECT_THAT(failed.message(), HasSubstr("reference cannot be opened: no thread is left"));
  });
}

TEST_P(OffloadEnding, AFailureDoesNotReachASessionThatIsBeingDestroyed) {
  std::latch closing(1);
  const auto blocks = [&](int rank) {
    if (rank != 0) return;
    closing.count_down();
    std::this_thread::sleep_for(milliseconds(50));  // in this time, rank 0 learns of the abort
  };
  const std::shared_ptr<ReferenceLibrary> counted = library({.closing = blocks});
  Cluster ranks(2, with(counted));
  ranks.run([&](Communicator& comm) {
    std::vector<float> data(3, 0);
    EXPECT_TRUE(outcome(device_sum(comm, data)).ok());
    if (comm.rank() == 0) {
      comm = Communicator();
    } else {
      closing.wait();
      comm.abort("rank 1 has had enough");
    }
  });
  EXPECT_EQ(counted->aborts_while_closing, 0);
}

// On rank 0, the library reports that it has lost rank 2. So rank 2 is excluded.
TEST_P(OffloadEnding, ARankThatALibraryHasLostIsNamed) {
  const auto fails = [](int rank, std::uint64_t call) {
    return rank == 0 && call == 1 ? Status(Code::peer_lost, "the link is down", 2) : Status();
  };
  Cluster ranks(3, with(library({.fails = fails})));
  std::barrier together(3);
  ranks.run([&](Communicator& comm) {
    std::vector<float> data(3, 0);
    EXPECT_TRUE(outcome(device_sum(comm, data)).ok());
    together.arrive_and_wait();
    Status failed = outcome(device_sum(comm, data));
    if (failed.ok()) failed = outcome(device_sum(comm, data));
    EXPECT_EQ(failed.code(), comm.rank() == 2 ? Code::aborted : Code::peer_lost) << failed.to_string();
    EXPECT_EQ(failed.peer(), 2);
  });
}

TEST_P(OffloadEnding, OnlyCallsOfALibraryKnowStreams) {
  Cluster ranks(2, with(library()));
  ranks.run([](Communicator& comm) {
    ToyStream stream;
    std::vector<float> data(3, 1);
    const Status refused = outcome(comm.all_reduce(data, ReduceOp::sum, {.stream = &stream}));
    EXPECT_EQ(refused.code(), Code::unsupported) << refused.to_string();
    EXPECT_THAT(refused.message(), HasSubstr("reference: it takes device memory only"));
    Work message = comm.recv(data, comm.rank(), 1);
    try {
      message.wait_on(&stream);
      ADD_FAILURE() << "nothing can make a stream wait for a message";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::unsupported) << error.what();
    }
    comm.send(data, comm.rank(), 1).wait();
    message.wait();
    message.wait_on(&stream);
    Work().wait_on(&stream);
  });
}

TEST_P(OffloadEnding, MemoryIsRegisteredWithTheLibrary) {
  const std::shared_ptr<ReferenceLibrary> counted = library();
  Cluster ranks(2, with(counted));
  ranks.run([&](Communicator& comm) {
    std::vector<float> data(100, 1);
    const Registration registration = comm.register_memory(std::as_writable_bytes(std::span(data)));
    EXPECT_TRUE(outcome(device_sum(comm, data)).ok());
    EXPECT_GE(counted->registrations, 1);
  });
  EXPECT_EQ(counted->registrations, 0);
}

TEST_P(OffloadEnding, AfterShrinkASessionIsOpenedAnew) {
  const std::shared_ptr<ReferenceLibrary> counted = library();
  Cluster ranks(1, with(counted));
  ranks.run([](Communicator& comm) {
    std::vector<float> data(3, 1);
    EXPECT_TRUE(outcome(device_sum(comm, data)).ok());
    Communicator rest = std::move(comm.shrink().communicator);
    EXPECT_EQ(outcome(device_sum(comm, data)).code(), Code::aborted);
    EXPECT_TRUE(outcome(device_sum(rest, data)).ok());
  });
  EXPECT_EQ(counted->sessions_opened, 2);
}

// The last rank leaves, and the other ranks continue without it.
TEST_P(OffloadEnding, SurvivorsOpenASessionAnew) {
  for (const int size : {2, 3, 4, 7, 8}) {
    const std::shared_ptr<ReferenceLibrary> counted = library();
    ClusterOptions options = with(counted);
    options.control = true;
    Cluster ranks(size, options);
    std::barrier together(size);
    ranks.run([&](Communicator& comm) {
      std::vector<float> data(3, 1);
      EXPECT_TRUE(outcome(device_sum(comm, data)).ok());
      together.arrive_and_wait();
      if (comm.rank() == size - 1) {
        comm = Communicator();
        return;
      }
      EXPECT_FALSE(outcome(device_sum(comm, data)).ok());
      Shrunk shrunk = comm.shrink(1);
      EXPECT_EQ(shrunk.completed, 2u);  // the first sum, and the exchange that opened the session
      Communicator& rest = shrunk.communicator;
      ASSERT_EQ(rest.size(), size - 1);
      std::ranges::fill(data, 1.0F);
      const Status sum = outcome(device_sum(rest, data));
      EXPECT_TRUE(sum.ok()) << sum.to_string();
      EXPECT_EQ(data[2], static_cast<float>(size - 1));
    });
    EXPECT_EQ(counted->sessions_opened, 2 * size - 1);
  }
}

INSTANTIATE_TEST_SUITE_P(, OffloadEnding, testing::Values(0u, 1u, 10u), [](const auto& parameter) {
  return parameter.param == 0 ? std::string("own_thread") : "polls_" + std::to_string(parameter.param);
});

}  // namespace
}  // namespace tutti::test
