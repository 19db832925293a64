// Tests communicators that contain only some of the ranks. The other ranks do not take part in making them.

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/conformance/on_each_transport.h"

namespace tutti::test {
namespace {

using Ranks = std::vector<int>;

std::int64_t sum_of_ranks(Communicator& group, int value) {
  std::int64_t sum = value;
  group.all_reduce(Buffer(&sum, 1, DataType::int64), ReduceOp::sum).wait();
  return sum;
}

template <class Body>
Status failure_of(Body body) {
  try {
    body();
    return Status();
  } catch (const Error& error) {
    return error.status();
  }
}

class CommunicatorGroup : public OnEachTransport {};

TEST_P(CommunicatorGroup, OnlyTheListedRanksTakePart) {
  Cluster ranks(4, options());
  ranks.run([](Communicator& comm) {
    const int rank = comm.rank();
    if (rank == 1) return;  // rank 1 is not in the list, so it makes no call
    const Ranks list = {3, 0, 2};
    Communicator group = comm.group(list);
    EXPECT_EQ(group.size(), 3);
    EXPECT_EQ(list[static_cast<std::size_t>(group.rank())], rank);
    EXPECT_EQ(sum_of_ranks(group, rank), 5);
    Communicator alone = comm.group(Ranks{rank});
    EXPECT_EQ(alone.size(), 1);
    EXPECT_EQ(sum_of_ranks(alone, rank), rank);
  });
}

// Ranks make groups in different orders, and several threads make groups at once. So their
// proposals for the groups' numbers collide.
TEST_P(CommunicatorGroup, GroupsThatOverlapDoNotMix) {
  Cluster ranks(4, options());
  ranks.run([](Communicator& comm) {
    const int rank = comm.rank();
    const std::array<Ranks, 4> lists = {{{0, 1}, {1, 2, 3}, {0, 2}, {0, 1, 2, 3}}};
    std::vector<std::thread> threads;
    for (int key = 0; key < 4; ++key) {
      const Ranks& list = lists[static_cast<std::size_t>(key)];
      if (std::ranges::find(list, rank) == list.end()) continue;
      threads.emplace_back([&comm, &list, key, rank] {
        std::int64_t expected = 0;
        for (const int each : list) expected += 100 * each + key;
        for (int round = 0; round < 20; ++round) {
          Communicator group = comm.group(list, key);
          EXPECT_EQ(sum_of_ranks(group, 100 * rank + key), expected);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    comm.barrier().wait();
  });
}

TEST_P(CommunicatorGroup, AReceiveOfAnythingTakesNoVotes) {
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    std::int32_t got = 0;
    Work work;
    if (comm.rank() == 0) work = comm.recv(std::span(&got, 1));
    Communicator group = comm.group(Ranks{1, 0});
    group.barrier().wait();
    const std::int32_t sent = 7;
    if (comm.rank() == 1) comm.send(std::span(&sent, 1), 0, 3).wait();
    work.wait();
    EXPECT_EQ(got, comm.rank() == 0 ? 7 : 0);
  });
}

TEST_P(CommunicatorGroup, WrongListsAreRefusedAtOnce) {
  Cluster ranks(3, options());
  ranks.run([](Communicator& comm) {
    const int rank = comm.rank(), other = (rank + 1) % 3;
    for (const Ranks& list :
         {Ranks{}, Ranks{other}, Ranks{rank, other, rank}, Ranks{rank, 3}, Ranks{-1, rank}}) {
      EXPECT_EQ(failure_of([&] { comm.group(list); }).code(), Code::invalid_argument);
    }
    int stream = 0;
    const Ranks all = {0, 1, 2};
    EXPECT_EQ(failure_of([&] { comm.group(all, 0, {.stream = &stream}); }).code(), Code::unsupported);
    EXPECT_EQ(failure_of([&] { comm.group(all, 0, {.region = &stream}); }).code(), Code::unsupported);
    comm.barrier().wait();
  });
}

TEST_P(CommunicatorGroup, ListsThatDifferAreAMismatch) {
  Cluster ranks(3, options());
  ranks.run([](Communicator& comm) {
    const Ranks one = {0, 1, 2}, other = {0, 2, 1};
    const Status why = failure_of([&] { comm.group(comm.rank() == 1 ? other : one); });
    EXPECT_EQ(why.code(), Code::mismatch) << why.to_string();
    EXPECT_EQ(why.peer() == 1, comm.rank() != 1) << why.to_string();
    EXPECT_TRUE(contains(why.message(),
                         comm.describe(why.peer()) + " lists other ranks than " + comm.describe(comm.rank())))
        << why.message();
    // Lists of different lengths are also a mismatch.
    const Ranks all = {2, 1, 0}, pair = {0, 2};
    if (comm.rank() != 1) {
      const Status differs = failure_of([&] { comm.group(comm.rank() == 0 ? pair : Ranks{2, 0}, 5); });
      EXPECT_EQ(differs.code(), Code::mismatch) << differs.to_string();
    }
    EXPECT_TRUE(comm.status().ok());
    EXPECT_EQ(comm.group(all).size(), 3);
  });
}

TEST_P(CommunicatorGroup, ARankThatNeverCallsIsNamed) {
  Cluster ranks(4, options());
  ranks.run([](Communicator& comm) {
    if (comm.rank() == 2) {
      EXPECT_EQ(outcome(comm.recv(Buffer(nullptr, 0, DataType::uint8), 3)).code(), Code::timeout);
      return;
    }
    const CallOptions soon{.timeout = std::chrono::milliseconds(300)};
    const Status why = failure_of([&] { comm.group(Ranks{0, 1, 2, 3}, 0, soon); });
    EXPECT_EQ(why.code(), Code::timeout) << why.to_string();
    EXPECT_TRUE(contains(why.message(), "group() after")) << why.message();
    EXPECT_TRUE(contains(why.message(), "was not over in time; still waiting for " + comm.describe(2)))
        << why.message();
  });
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorGroup, testing::ValuesIn(all_connections()), name_of_transport);

// These tests count messages to check whether communicators share memory, since a collective over
// shared memory sends no messages.
class SharingCommunicators : public OnEachTransport {};

// Each communicator takes more than a thousandth of the shared memory. So 2000 of them, one after another,
// can all share memory only if the memory of freed communicators is used again.
TEST_P(SharingCommunicators, MemoryIsUsedAgain) {
  Cluster ranks(3, options());
  ranks.run([](Communicator& comm) {
    const std::uint64_t before = comm.statistics().messages_sent;
    for (int round = 0; round < 2000; ++round) {
      Communicator part = std::move(*comm.split(0));
      EXPECT_EQ(sum_of_ranks(part, round), 3 * round);
    }
    EXPECT_EQ(comm.statistics().messages_sent, before);
  });
}

TEST_P(SharingCommunicators, AMismatchTakesNoMemory) {
  Cluster ranks(3, options());
  ranks.run([](Communicator& comm) {
    for (int round = 0; round < 1000; ++round) {
      const Ranks one = {0, 1, 2}, other = {0, 2, 1};
      const Status why = failure_of([&] { comm.group(comm.rank() == round % 3 ? other : one); });
      ASSERT_EQ(why.code(), Code::mismatch) << why.to_string();
    }
    Communicator part = comm.group(Ranks{0, 1, 2});
    const std::uint64_t before = comm.statistics().messages_sent;
    EXPECT_EQ(sum_of_ranks(part, 1), 3);
    EXPECT_EQ(comm.statistics().messages_sent, before);
  });
}

TEST_P(SharingCommunicators, MessagesAreExchangedWhenTheRoomEnds) {
  ClusterOptions small = options();
  small.shared_room = 0;
  Cluster ranks(3, small);
  ranks.run([](Communicator& comm) {
    EXPECT_EQ(sum_of_ranks(comm, 1), 3);
    const std::uint64_t before = comm.statistics().messages_sent;
    Communicator part = std::move(*comm.split(0));
    EXPECT_EQ(comm.statistics().messages_sent, before);  // the old communicator shares memory
    EXPECT_EQ(sum_of_ranks(part, 1), 3);
    EXPECT_GT(comm.statistics().messages_sent, before);
  });
}

INSTANTIATE_TEST_SUITE_P(, SharingCommunicators, testing::Values("shared", "shm"), name_of_transport);

}  // namespace
}  // namespace tutti::test
