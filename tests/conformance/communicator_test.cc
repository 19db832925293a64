// What a communicator promises besides right answers: errors, point to point, splitting, ending.

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/cluster.h"
#include "tests/support/collective_case.h"

namespace tutti::test {
namespace {

class CommunicatorTest : public testing::TestWithParam<std::string> {
 protected:
  ClusterOptions options() const { return {.transport = GetParam()}; }
};

Status outcome(Work work) {
  try {
    work.wait();
    return Status();
  } catch (const Error& error) {
    return error.status();
  }
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_P(CommunicatorTest, SmallAllReduceOnTwoRanksIsOneFrameEachWay) {
  const bool shared = GetParam() == "shared" || GetParam() == "shm";
  Cluster ranks(2, options());
  ranks.run([shared](Communicator& comm) {
    std::int64_t value = comm.rank();
    comm.all_reduce(std::span(&value, 1), ReduceOp::sum).wait();  // connects
    comm.barrier().wait();
    const auto before = comm.statistics();
    constexpr int rounds = 10;
    for (int i = 0; i < rounds; ++i) comm.all_reduce(std::span(&value, 1), ReduceOp::sum).wait();
    const auto after = comm.statistics();
    if (shared) {  // nor a message at all
      EXPECT_EQ(after.messages_sent, 0u);
      EXPECT_EQ(after.connections, 0);
      return;
    }
    EXPECT_EQ(after.messages_sent - before.messages_sent, rounds);
    EXPECT_EQ(after.messages_received - before.messages_received, rounds);
    EXPECT_EQ(after.frames_sent - before.frames_sent, rounds);
    EXPECT_EQ(after.bytes_sent - before.bytes_sent, rounds * sizeof(value));
    EXPECT_EQ(after.connections, 1);
  });
}

TEST_P(CommunicatorTest, DifferentCallsAreAMismatchOnBothSides) {
  struct Variant {
    const char* name;
    std::function<Work(Communicator&, std::vector<float>&, bool)> call;
  };
  const std::vector<Variant> variants = {
      {"kind", [](Communicator& c, auto& v,
                  bool odd) { return odd ? c.broadcast(v, 0) : c.all_reduce(v, ReduceOp::sum); }},
      {"count",
       [](Communicator& c, auto& v, bool odd) {
         return c.all_reduce(Buffer(v.data(), odd ? 3 : 4, DataType::float32), ReduceOp::sum);
       }},
      {"type",
       [](Communicator& c, auto& v, bool odd) {
         return c.all_reduce(Buffer(v.data(), 4, odd ? DataType::int32 : DataType::float32), ReduceOp::sum);
       }},
      {"op", [](Communicator& c, auto& v,
                bool odd) { return c.all_reduce(v, odd ? ReduceOp::max : ReduceOp::min); }},
      {"root", [](Communicator& c, auto& v, bool odd) { return c.broadcast(v, odd ? 1 : 0); }},
      {"algorithm",
       [](Communicator& c, auto& v, bool odd) {
         return c.all_reduce(v, ReduceOp::sum, {.algorithm = odd ? "ring" : "recursive_doubling"});
       }},
  };
  for (const Variant& variant : variants) {
    Cluster ranks(2, options());
    ranks.run([&](Communicator& comm) {
      std::vector<float> data(4, 1.0f);
      Status status = outcome(variant.call(comm, data, comm.rank() == 1));
      // A side that needs nothing from the other may have finished before it could know; then its next call
      // tells.
      if (status.ok()) status = outcome(comm.barrier());
      EXPECT_EQ(status.code(), Code::mismatch) << variant.name << ": " << status.to_string();
      EXPECT_EQ(comm.status().code(), Code::mismatch);
    });
  }
}

// Without a control plane nobody can be asked: both sides are named, the odd one among them.
TEST_P(CommunicatorTest, EveryRankHearsOfTheOddOne) {
  using Variant = std::function<Work(Communicator&, std::vector<float>&, bool)>;
  const auto type = [](bool odd) { return odd ? DataType::int32 : DataType::float32; };
  std::vector<Variant> variants = {
      [](Communicator& c, auto& v, bool odd) {
        return odd ? c.all_gather(v) : c.all_reduce(v, ReduceOp::sum);
      },
      [](Communicator& c, auto& v, bool odd) {
        return c.all_reduce(Buffer(v.data(), odd ? 3 : 6, DataType::float32), ReduceOp::sum);
      },
      [&](Communicator& c, auto& v, bool odd) {
        return c.all_reduce(Buffer(v.data(), 6, type(odd)), ReduceOp::sum);
      },
      [](Communicator& c, auto& v, bool odd) { return c.all_reduce(v, odd ? ReduceOp::max : ReduceOp::min); },
  };
  // By messages, two roots may each wait for the other's, which only a control plane can tell.
  if (GetParam() == "shared" || GetParam() == "shm") {
    variants.push_back(
        [](Communicator& c, auto& v, bool odd) { return c.reduce(v, ReduceOp::sum, odd ? 1 : 0); });
  }
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    for (int odd = 0; odd < 3; ++odd) {
      Cluster ranks(3, options());
      ranks.run([&](Communicator& comm) {
        std::vector<float> data(6, 1.0f);
        Status status = outcome(variants[variant](comm, data, comm.rank() == odd));
        for (int i = 0; i < 20 && status.ok(); ++i) status = outcome(comm.barrier());
        EXPECT_EQ(status.code(), Code::mismatch) << variant << ": " << status.to_string();
        int named = 0;
        for (int rank = 0; rank < 3; ++rank)
          named += contains(status.message(), comm.describe(rank) + " called ") ? 1 : 0;
        EXPECT_EQ(named, 2) << status.message();
        EXPECT_TRUE(contains(status.message(), comm.describe(odd) + " called ")) << status.message();
        EXPECT_TRUE(status.peer() == odd || status.peer() == -1) << status.peer() << ": " << status.message();
      });
    }
  }
}

// What one rank's function throws fails the collective on all, also on those that have their result.
TEST_P(CommunicatorTest, AUsersOperationThatThrowsFailsOnAllRanks) {
  struct Thrower {
    bool throws = false;
    bool has_thrown = false;
  };
  const auto add = [](const void* left, const void* right, void* out, std::size_t count, DataType,
                      void* state) {
    auto& thrower = *static_cast<Thrower*>(state);
    thrower.has_thrown |= thrower.throws;
    if (thrower.throws) throw std::runtime_error("element 7 is odd");
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<std::int64_t*>(out)[i] =
          static_cast<const std::int64_t*>(left)[i] + static_cast<const std::int64_t*>(right)[i];
    }
  };
  const std::vector<CollectiveKind> kinds = {CollectiveKind::all_reduce, CollectiveKind::reduce,
                                             CollectiveKind::reduce_scatter, CollectiveKind::scan};
  int failures = 0;
  for (const CollectiveKind kind : kinds) {
    for (const std::size_t count : {3u, 30'000u}) {
      for (int who = 0; who < 3; ++who) {
        Cluster ranks(3, options());
        std::array<Thrower, 3> throwers;
        throwers[static_cast<std::size_t>(who)].throws = true;
        std::array<Status, 3> seen;
        ranks.run([&](Communicator& comm) {
          const auto rank = static_cast<std::size_t>(comm.rank());
          const ReduceOp op = ReduceOp::user("add", add, true, &throwers[rank]);
          std::vector<std::int64_t> data(count, 1), block(count / 3);
          switch (kind) {
            case CollectiveKind::all_reduce:
              seen[rank] = outcome(comm.all_reduce(data, op));
              break;
            case CollectiveKind::reduce:
              seen[rank] = outcome(comm.reduce(data, op, 1));
              break;
            case CollectiveKind::reduce_scatter:
              seen[rank] = outcome(comm.reduce_scatter(data, block, op));
              break;
            default:
              seen[rank] = outcome(comm.scan(data, op));
          }
        });
        const bool thrown = throwers[static_cast<std::size_t>(who)].has_thrown;
        failures += thrown ? 1 : 0;
        for (std::size_t rank = 0; rank < 3; ++rank) {
          SCOPED_TRACE(std::string(to_string(kind)) + " of " + std::to_string(count) + ", thrown by " +
                       std::to_string(who) + ", rank " + std::to_string(rank));
          EXPECT_EQ(seen[rank].code(), thrown ? Code::aborted : Code::ok) << seen[rank].to_string();
          EXPECT_EQ(seen[rank].peer(), thrown ? who : -1);
          const std::string reason =
              ranks.communicator(who).describe(who) + ": its operation \"add\" failed: element 7 is odd";
          EXPECT_EQ(contains(seen[rank].message(), reason), thrown) << seen[rank].message();
        }
      }
    }
  }
  EXPECT_GE(failures, 2 * static_cast<int>(kinds.size()));
}

TEST_P(CommunicatorTest, ATypeThatIsNoneIsRefused) {
  const auto none = static_cast<DataType>(99);
  Cluster ranks(2, options());
  ranks.run([&](Communicator& comm) {
    std::vector<std::uint64_t> data(8), counts(2, 2);
    const Buffer odd(data.data(), 4, none), even(data.data() + 4, 4, none);
    const std::vector<std::function<Work()>> calls = {
        [&] { return comm.all_reduce(odd, ReduceOp::sum); },
        [&] { return comm.all_reduce(odd, even, ReduceOp::max); },
        [&] { return comm.broadcast(odd, 0); },
        [&] { return comm.all_gather(odd); },
        [&] { return comm.reduce_scatter(odd, ReduceOp::sum); },
        [&] { return comm.all_to_all_v(odd, counts, even, counts); },
        [&] { return comm.send(odd, 0); },
        [&] { return comm.recv(odd, 0); },
    };
    for (const auto& call : calls) {
      const Status status = outcome(call());
      EXPECT_EQ(status.code(), Code::invalid_argument) << status.to_string();
      EXPECT_TRUE(contains(status.message(), "99 is no data type")) << status.message();
    }
    comm.barrier().wait();
  });
}

TEST_P(CommunicatorTest, WhatACallbackThrowsHarmsNobody) {
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

TEST_P(CommunicatorTest, AnEmptyOneThrows) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    Communicator moved = std::move(comm);
    std::int32_t value = 1;
    const Buffer buffer(&value, 1, DataType::int32);
    const std::vector<std::function<void()>> calls = {
        [&] { static_cast<void>(comm.rank()); },
        [&] { static_cast<void>(comm.size()); },
        [&] { comm.all_reduce(buffer, ReduceOp::sum); },
        [&] { comm.barrier(); },
        [&] { comm.send(buffer, 0); },
        [&] { comm.recv(buffer, 0); },
        [&] { comm.batch({}); },
        [&] { comm.split(0); },
        [&] { comm.allocate(1); },
        [&] { comm.abort("nothing"); },
        [&] { static_cast<void>(comm.status()); },
        [&] { comm.shrink(); },
        [&] { comm.describe(0); },
        [&] { comm.statistics(); },
        [&] { comm.descriptor(); },
        [&] { comm.progress(); },
    };
    for (std::size_t i = 0; i < calls.size(); ++i) {
      try {
        calls[i]();
        ADD_FAILURE() << i << " throws nothing";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::invalid_argument) << i;
      }
    }
    EXPECT_FALSE(comm);
    comm = std::move(moved);
    comm.barrier().wait();
  });
}

TEST_P(CommunicatorTest, ATimeoutNamesWhoIsMissingAndAborts) {
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
      // What rank 0 has sent until then would be enough for an all_reduce.
      for (int i = 0; i < 60'000 && comm.status().ok(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(outcome(comm.all_reduce(data, ReduceOp::sum)).code(), Code::timeout);
    }
  });
}

TEST_P(CommunicatorTest, WaitForOnlyReturns) {
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

TEST_P(CommunicatorTest, AbortEndsEveryWait) {
  Cluster ranks(3, options());
  ranks.run([](Communicator& comm) {
    comm.barrier().wait();
    // Over everywhere before anybody aborts.
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

TEST_P(CommunicatorTest, CallbacksRunOnceAndMustNotWait) {
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

TEST_P(CommunicatorTest, ACallbackMayAskForStatistics) {
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

TEST_P(CommunicatorTest, NobodyWaitsAndItStillProgresses) {
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

TEST_P(CommunicatorTest, PointToPoint) {
  Cluster ranks(3, options());
  ranks.run([](Communicator& comm) {
    const int next = (comm.rank() + 1) % comm.size();
    const int previous = (comm.rank() + comm.size() - 1) % comm.size();
    std::vector<std::int32_t> out(1000, comm.rank());
    std::vector<std::int32_t> in(2000, -1);
    Work receive = comm.recv(in, previous, 7);
    comm.send(out, next, 7).wait();
    receive.wait();
    EXPECT_EQ(in[999], previous);
    EXPECT_EQ(in[1000], -1);
    EXPECT_EQ(receive.received().source, previous);
    EXPECT_EQ(receive.received().tag, 7u);
    EXPECT_EQ(receive.received().bytes, 4000u);
    // Any source, any tag, to oneself too.
    for (int peer = 0; peer < comm.size(); ++peer) comm.send(std::span(out).first(1), peer, 100 + peer);
    int sum = 0;
    for (int i = 0; i < comm.size(); ++i) {
      std::int32_t value = -1;
      Work any = comm.recv(std::span(&value, 1));
      any.wait();
      EXPECT_EQ(any.received().source, value);
      EXPECT_EQ(any.received().tag, 100u + static_cast<unsigned>(comm.rank()));
      sum += value;
    }
    EXPECT_EQ(sum, 3);
  });
}

TEST_P(CommunicatorTest, ATooSmallReceiveFailsAlone) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    std::vector<char> data(comm.rank() == 0 ? 100 : 10);
    if (comm.rank() == 0) {
      EXPECT_TRUE(outcome(comm.send(data, 1)).ok());  // the message is lost at its receiver alone
    } else {
      EXPECT_EQ(outcome(comm.recv(data, 0)).code(), Code::mismatch);
    }
    comm.barrier().wait();
    EXPECT_TRUE(comm.status().ok());
  });
}

TEST_P(CommunicatorTest, BatchExchangesWithEverybody) {
  Cluster ranks(4, options());
  ranks.run([](Communicator& comm) {
    std::vector<std::vector<double>> out(4, std::vector<double>(30'000, comm.rank()));
    std::vector<std::vector<double>> in(4, std::vector<double>(30'000));
    std::vector<Transfer> transfers;
    for (int peer = 0; peer < 4; ++peer) {
      transfers.push_back({Transfer::Direction::send, out[static_cast<std::size_t>(peer)], peer, 1});
      transfers.push_back({Transfer::Direction::recv, in[static_cast<std::size_t>(peer)], peer, 1});
    }
    comm.batch(transfers).wait();
    for (int peer = 0; peer < 4; ++peer) EXPECT_EQ(in[static_cast<std::size_t>(peer)].back(), peer);
  });
}

TEST_P(CommunicatorTest, SplitSharesConnections) {
  Cluster ranks(4, options());
  ranks.run([](Communicator& comm) {
    std::optional<Communicator> half = comm.split(comm.rank() % 2, -comm.rank());
    ASSERT_TRUE(half.has_value());
    EXPECT_EQ(half->size(), 2);
    EXPECT_EQ(half->rank(), comm.rank() < 2 ? 1 : 0);  // ordered by key: the higher rank first
    std::int32_t value = comm.rank();
    half->all_reduce(std::span(&value, 1), ReduceOp::sum).wait();
    EXPECT_EQ(value, comm.rank() % 2 == 0 ? 2 : 4);
    std::optional<Communicator> some = comm.split(comm.rank() == 3 ? no_color : 0);
    EXPECT_EQ(some.has_value(), comm.rank() != 3);
    // One fails, the other lives on over the same connections.
    comm.barrier().wait();
    if (comm.rank() == 0) half->abort("only this one");
    if (comm.rank() == 2) {
      EXPECT_EQ(outcome(half->barrier()).code(), Code::aborted);
    }
    comm.barrier().wait();
    EXPECT_TRUE(comm.status().ok());
  });
}

// Some ranks have the new communicator already when the old one fails, others will never have it.
class CommunicatorMessages : public testing::TestWithParam<std::string> {};

TEST_P(CommunicatorMessages, ASplitThatFailsOnSomeRanksLeavesNobodyWaiting) {
  Cluster ranks(3, {.transport = GetParam()});
  ranks.run([](Communicator& comm) {
    for (int round = 0; round < 100; ++round) {
      Communicator parent = std::move(*comm.split(0));
      std::thread other([&] {
        if (comm.rank() != 0) return;
        std::this_thread::sleep_for(std::chrono::microseconds(3 * round));
        parent.abort("enough");
      });
      try {
        parent.barrier().wait();
        Communicator part = std::move(*parent.split(0));
        part.barrier({.timeout = std::chrono::seconds(20)}).wait();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::aborted) << error.what();
      }
      other.join();
      comm.barrier().wait();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, CommunicatorMessages, testing::Values("inproc", "tcp"),
                         [](const auto& parameter) { return parameter.param; });

TEST_P(CommunicatorTest, DestroyedWithOperationsInFlight) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    std::vector<float> data(1'000'000, 1.0f);
    if (comm.rank() == 0) {
      Work work = comm.all_reduce(data, ReduceOp::sum);
      comm = Communicator();
      EXPECT_TRUE(work.done());
      EXPECT_EQ(work.status().code(), Code::aborted);
    } else {
      EXPECT_EQ(outcome(comm.recv(data, 0)).code(), Code::aborted);
    }
  });
}

TEST_P(CommunicatorTest, AnExceptionIsToldToTheOthers) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    std::vector<float> data(4);
    comm.all_reduce(data, ReduceOp::sum).wait();
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
    }
  });
}

TEST_P(CommunicatorTest, DestroyedInsideACallback) {
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

// Nothing was ever sent between the two: whoever only waits must notice all the same.
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

TEST_P(CommunicatorTest, InvalidArgumentsAreRefusedLocally) {
  Cluster ranks(1, options());
  ranks.run([](Communicator& comm) {
    std::vector<float> data(10);
    std::vector<double> doubles(10);
    std::vector<std::uint64_t> counts(3);
    const std::span<float> all(data);
    EXPECT_EQ(outcome(comm.all_reduce(data, doubles, ReduceOp::sum)).code(), Code::invalid_argument);
    EXPECT_EQ(outcome(comm.all_reduce(all.first(9), all.last(9), ReduceOp::sum)).code(),
              Code::invalid_argument);
    EXPECT_EQ(outcome(comm.all_reduce(data, ReduceOp::bit_and)).code(), Code::unsupported);
    EXPECT_EQ(outcome(comm.broadcast(data, 1)).code(), Code::invalid_argument);
    EXPECT_EQ(outcome(comm.all_gather_v(data, data, counts)).code(), Code::invalid_argument);
    EXPECT_EQ(outcome(comm.all_reduce(Buffer(nullptr, 3, DataType::float32), ReduceOp::sum)).code(),
              Code::invalid_argument);
    EXPECT_EQ(outcome(comm.all_reduce(data, ReduceOp::sum, {.algorithm = "no_such"})).code(),
              Code::invalid_argument);
    EXPECT_EQ(outcome(comm.send(data, 5)).code(), Code::invalid_argument);
    const Buffer beyond(data.data(), (std::size_t{1} << 62) + 1, DataType::float32);
    EXPECT_EQ(outcome(comm.all_reduce(beyond, ReduceOp::sum)).code(), Code::invalid_argument);
    EXPECT_EQ(outcome(comm.send(beyond, 0)).code(), Code::invalid_argument);
    EXPECT_EQ(outcome(comm.all_gather(beyond, all.first(0))).code(), Code::invalid_argument);
    EXPECT_TRUE(comm.status().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorTest, testing::Values("inproc", "tcp", "shared", "shm"),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace tutti::test
