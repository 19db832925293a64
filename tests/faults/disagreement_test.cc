// Tests ranks that make different calls, or no call at all.

#include <csignal>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/faults/fault_world.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;

class Differ : public testing::TestWithParam<std::tuple<int, std::string>> {};

// All ranks get `mismatch` for every kind of difference, and the error shows both calls.
TEST_P(Differ, IsAMismatchOnAllRanks) {
  const auto& [size, transport] = GetParam();
  for (const std::string what : {"kind", "size", "type", "op", "root", "order", "way"}) {
    FaultWorld world(size, {"differ", what}, {.transport = transport});
    ASSERT_TRUE(world.ready());
    for (int rank = 0; rank < size; ++rank) {
      SCOPED_TRACE(what + ", rank " + std::to_string(rank));
      const auto failure = world.failure(rank);
      ASSERT_TRUE(failure) << world.report();
      EXPECT_EQ(failure->code, "mismatch") << failure->message;
      // The message contains both calls, as in "rank 1 called A as operation 3, where rank 0 called B".
      const std::string& text = failure->message;
      const std::size_t first = text.find(" call", text.find("s: ") + 1);
      EXPECT_NE(text.find(" call", first + 1), text.npos) << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Differ, testing::Combine(testing::Values(2, 3, 5), testing::Values("tcp", "shm")),
                         [](const auto& each) {
                           return std::get<1>(each.param) + std::to_string(std::get<0>(each.param));
                         });

class OddOne : public testing::TestWithParam<std::string> {};

struct Pair {
  std::string what, odd, usual;
};

// Rank `odd` of the three ranks in `world` makes a different call. Returns which rank each rank
// blames: `odd`, or -1 if it blames no rank. Checks that every rank's error names the call of `odd`
// and the call of another rank.
std::vector<int> blamed_in(FaultWorld& world, const Pair& pair, int odd) {
  std::vector<int> blamed;
  for (int rank = 0; rank < world.size(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    const auto failure = world.failure(rank);
    if (!failure || !world.rank(rank).wait_for_output("\npeer ")) {
      ADD_FAILURE() << world.report();
      continue;
    }
    EXPECT_EQ(failure->code, "mismatch") << failure->message;
    const auto called = [&](int who, const std::string& call) {
      return failure->message.find("pid " + std::to_string(world.rank(who).pid()) + ") called " + call) !=
             std::string::npos;
    };
    EXPECT_TRUE(called(odd, pair.odd)) << failure->message;
    EXPECT_TRUE(called((odd + 1) % 3, pair.usual) || called((odd + 2) % 3, pair.usual)) << failure->message;
    const std::string out = world.rank(rank).out();
    blamed.push_back(std::stoi(out.substr(out.find("\npeer ") + 6)));
    EXPECT_TRUE(blamed.back() == odd || blamed.back() == -1) << blamed.back() << ": " << failure->message;
  }
  return blamed;
}

// Each of three ranks in turn makes a different call. If all ranks call in time, the majority is
// known, and all ranks blame rank `odd`. On a busy machine, several runs may be needed until all
// ranks call in time.
TEST_P(OddOne, IsBlamedByAllRanks) {
  const std::vector<Pair> pairs = {
      {"kind", "broadcast(count=3000, float32, root=0)", "all_reduce(count=3000, float32, sum)"},
      {"size", "all_reduce(count=999, float32, sum)", "all_reduce(count=1000, float32, sum)"},
      {"type", "all_reduce(count=1000, int32, sum)", "all_reduce(count=1000, float32, sum)"},
      {"op", "all_reduce(count=1000, float32, max)", "all_reduce(count=1000, float32, sum)"},
      {"root", "reduce(count=3000, float32, sum, root=1)", "reduce(count=3000, float32, sum, root=0)"},
      {"algorithm", "all_reduce(count=3000, float32, sum, algorithm=ring)",
       "all_reduce(count=3000, float32, sum, algorithm=recursive_doubling)"},
      {"loop", "all_reduce(count=2, float32, sum)", "barrier()"},
      {"split", "all_reduce(count=3000, float32, sum)", "split()"},
  };
  for (const Pair& pair : pairs) {
    for (int odd = 0; odd < 3; ++odd) {
      SCOPED_TRACE(pair.what + ", odd one: " + std::to_string(odd));
      const std::vector<int> all(3, odd);
      std::vector<int> blamed;
      for (int runs = 0; runs < 20 && blamed != all && !HasFailure(); ++runs) {
        FaultWorld world(3, {"differ", pair.what, std::to_string(odd)}, {.transport = GetParam()});
        ASSERT_TRUE(world.ready());
        blamed = blamed_in(world, pair, odd);
      }
      ASSERT_EQ(blamed, all);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, OddOne, testing::Values("tcp", "shm"),
                         [](const auto& each) { return each.param; });

class Late : public testing::TestWithParam<std::tuple<int, std::string>> {};

// Returns the ranks that a timeout's message describes as `what`, or an empty text if the message names no
// such ranks.
std::string named_as(const std::string& what, const std::string& message) {
  const std::size_t begin = message.find("; " + what + ": ");
  return begin == message.npos ? "" : message.substr(begin + 2, message.find(';', begin + 2) - begin - 2);
}

// On a busy machine, some ranks may not answer within 100 ms, perhaps even the late rank. The error
// then lists these ranks as not answering. Only the late rank may be named as late.
TEST_P(Late, IsNamedByTheTimeout) {
  const auto& [size, transport] = GetParam();
  for (const int who : {0, size - 1}) {
    FaultWorld world(size, {"late", std::to_string(who)}, {.transport = transport});
    ASSERT_TRUE(world.ready());
    for (int rank = 0; rank < size; ++rank) {
      const auto failure = world.failure(rank);
      ASSERT_TRUE(failure) << world.report();
      EXPECT_EQ(failure->code, "timeout") << failure->message;
      const std::string late = named_as("late", failure->message);
      const std::string silent = named_as("not answering", failure->message);
      EXPECT_TRUE(world.names(late.empty() ? silent : late, who)) << failure->message;
      EXPECT_EQ(late.find(", rank"), late.npos) << failure->message;
    }
  }
}

// A stopped rank cannot answer that it is late. The call times out long before the heartbeat limit.
TEST_P(Late, IsNamedAlsoWhenStopped) {
  const auto& [size, transport] = GetParam();
  for (const int who : {0, size - 1}) {
    FaultWorld world(size, {"late", std::to_string(who)}, {.transport = transport});
    ASSERT_TRUE(world.ready());
    world.rank(who).signal(SIGSTOP);
    for (int rank = 0; rank < size; ++rank) {
      if (rank == who) continue;
      const auto failure = world.failure(rank);
      ASSERT_TRUE(failure) << world.report();
      EXPECT_EQ(failure->code, "timeout") << failure->message;
      EXPECT_TRUE(world.names(failure->message, who)) << failure->message;
    }
  }
}

// The communicator fails while the leader is still asking which rank is late. The leader must not
// stay busy after that.
TEST_P(Late, LeavesNothingToDoBehind) {
  const auto& [size, transport] = GetParam();
  FaultWorld world(size, {"hasty", std::to_string(size - 1)}, {.transport = transport});
  ASSERT_TRUE(world.ready());
  world.rank(size - 1).signal(SIGSTOP);
  ASSERT_TRUE(world.failure(0)) << world.report();
  ASSERT_TRUE(world.rank(0).wait_for_output("rested ")) << world.report();
  const std::string out = world.rank(0).out();
  EXPECT_LT(std::stol(out.substr(out.find("rested ") + 7)), 100) << world.report();
}

TEST_P(Late, HasLeft) {
  const auto& [size, transport] = GetParam();
  FaultWorld world(size, {"leave", std::to_string(size - 1)}, {.transport = transport});
  ASSERT_TRUE(world.ready());
  for (int rank = 0; rank < size - 1; ++rank) {
    const auto failure = world.failure(rank);
    ASSERT_TRUE(failure) << world.report();
    EXPECT_EQ(failure->code, "aborted") << failure->message;
    EXPECT_TRUE(world.names(failure->message, size - 1)) << failure->message;
    EXPECT_THAT(failure->message, HasSubstr("has left"));
  }
}

std::string ranks_of(const testing::TestParamInfo<Late::ParamType>& each) {
  return std::to_string(std::get<0>(each.param)) + "_ranks";
}

// ctest runs suites in parallel, so each transport has its own suite.
INSTANTIATE_TEST_SUITE_P(Tcp, Late, testing::Combine(testing::Values(2, 3, 16), testing::Values("tcp")),
                         ranks_of);
INSTANTIATE_TEST_SUITE_P(Shm, Late, testing::Combine(testing::Values(2, 3, 16), testing::Values("shm")),
                         ranks_of);

}  // namespace
}  // namespace tutti::test
