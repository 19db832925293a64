// Tests that survivors agree on which ranks remain, even if several ranks die at arbitrary times.

#include <csignal>
#include <random>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/faults/fault_world.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;

class Shrink : public testing::TestWithParam<std::string> {};

std::vector<std::string> looping(const std::string& left, const std::string& least) {
  return {"shrink", left, least, "loop", "all_reduce", "1000"};
}

TEST_P(Shrink, OneAfterTheOtherUntilTwoAreLeft) {
  FaultWorld world(6, looping("2", "1"), {.transport = GetParam()});
  ASSERT_TRUE(world.ready());
  int left = 6;
  for (const int victim : {0, 5, 1, 3}) {
    world.rank(victim).signal(SIGKILL);
    --left;
    for (const int rank : {2, 4}) ASSERT_TRUE(world.shrunk(rank, left)) << world.report();
  }
  for (const int rank : {2, 4}) EXPECT_EQ(world.rank(rank).wait(), 0) << world.rank(rank).report();
}

TEST_P(Shrink, SeveralAtOnce) {
  FaultWorld world(7, looping("4", "0"), {.transport = GetParam()});
  ASSERT_TRUE(world.ready());
  for (const int victim : {0, 1, 4}) world.rank(victim).signal(SIGKILL);
  for (const int rank : {2, 3, 5, 6}) ASSERT_TRUE(world.shrunk(rank, 4)) << world.report();
}

// A rank dies. While the other ranks agree to continue without it, their leader and the leader's
// successor also die.
TEST_P(Shrink, TheLeaderDiesMeanwhile) {
  const std::uint64_t seed = argument("seed", std::random_device{}());
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (std::uint64_t run = 0; run < argument("runs", 5); ++run) {
    FaultWorld world(6, looping("3", "1"), {.transport = GetParam()});
    ASSERT_TRUE(world.ready());
    world.rank(3).signal(SIGKILL);
    for (const int leader : {0, 1}) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
      world.rank(leader).signal(SIGKILL);
    }
    for (const int rank : {2, 4, 5}) {
      ASSERT_TRUE(world.shrunk(rank, 3)) << world.report();
      EXPECT_EQ(world.rank(rank).wait(), 0) << world.report();
    }
  }
}

// Two ranks call `shrink`, and their calls time out at least once before the third rank calls it.
// All three ranks meet when the first two try again.
TEST_P(Shrink, WhoComesLateMeetsTheOthersWhenTheyTryAgain) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // This timeout also limits the operations of `init`, which take longer under a sanitizer.
  const int timeout = 8;
#else
  const int timeout = 2;
#endif
  for (const int who : {0, 2}) {
    FaultWorld world(3, {"again", std::to_string(who), std::to_string(timeout + 1)},
                     {.transport = GetParam(), .more = {{"TUTTI_TIMEOUT", std::to_string(timeout) + "s"}}});
    ASSERT_TRUE(world.ready());
    for (const int rank : {0, 1, 2}) ASSERT_TRUE(world.shrunk(rank, 3)) << world.report();
  }
}

// All ranks leave as soon as shrink returns. The leader's shrink returns only when all ranks know
// the decision. So no rank waits for a leader that has left.
TEST_P(Shrink, AllMayLeaveAtOnceAfterwards) {
  for (std::uint64_t run = 0; run < argument("runs", 20); ++run) {
    FaultWorld world(6, {"part"}, {.transport = GetParam()});
    ASSERT_TRUE(world.ready());
    for (int rank = 0; rank < 6; ++rank) ASSERT_TRUE(world.shrunk(rank, 6)) << world.report();
  }
}

TEST_P(Shrink, ManySplitsBeforeMakeNoDifference) {
  FaultWorld world(3, {"part", "2300"}, {.transport = GetParam()});
  ASSERT_TRUE(world.ready());
  for (const int rank : {0, 1, 2}) ASSERT_TRUE(world.shrunk(rank, 3)) << world.report();
}

TEST_P(Shrink, HalfOrLessIsRefused) {
  FaultWorld world(4, looping("2", "0"), {.transport = GetParam()});
  ASSERT_TRUE(world.ready());
  for (const int victim : {0, 2}) world.rank(victim).signal(SIGKILL);
  for (const int rank : {1, 3}) {
    EXPECT_EQ(world.rank(rank).wait(), 1) << world.report();
    EXPECT_THAT(world.rank(rank).err(), HasSubstr("only 2 of 4 ranks are left"));
  }
}

// A rank is stopped for longer than the heartbeat limit, and the other ranks continue. The stopped
// rank does not disturb them when it runs again.
TEST_P(Shrink, AStoppedRankIsLeftBehindAndStaysOutside) {
  FaultWorld world(4, looping("1", "0"), {.transport = GetParam(), .heartbeat = "3s"});
  ASSERT_TRUE(world.ready());
  world.rank(0).signal(SIGSTOP);
  for (const int rank : {1, 2, 3}) ASSERT_TRUE(world.shrunk(rank, 3)) << world.report();
  world.rank(0).signal(SIGCONT);
  const auto failure = world.failure(0);
  ASSERT_TRUE(failure) << world.report();
  EXPECT_EQ(failure->code, "aborted");
  EXPECT_THAT(failure->message, HasSubstr("stays excluded"));
  EXPECT_EQ(world.rank(0).wait(), 0) << world.report();
  EXPECT_FALSE(world.rank(1).wait(std::chrono::milliseconds(500))) << world.report();
  // The other ranks are still working, so they notice the next failure.
  world.rank(3).signal(SIGKILL);
  for (const int rank : {1, 2}) ASSERT_TRUE(world.shrunk(rank, 2)) << world.report();
}

INSTANTIATE_TEST_SUITE_P(, Shrink, testing::Values("tcp", "shm"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tutti::test
