// Tests ranks that are silent because they are stopped or busy.

#include <csignal>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "tests/faults/fault_world.h"

namespace tutti::test {
namespace {

class Stopped : public testing::TestWithParam<std::string> {};

TEST_P(Stopped, IsLostOnAllRanksAfterTheLimitAndStaysOutside) {
  constexpr int size = 5, victim = 2;
  FaultWorld world(size, {"loop", "all_reduce", "1000"}, {.transport = GetParam(), .heartbeat = "3s"});
  ASSERT_TRUE(world.ready());
  const std::int64_t stopped = monotonic_now();
  world.rank(victim).signal(SIGSTOP);
  for (const int rank : {0, 1, 3, 4}) {
    const auto failure = world.failure(rank);
    ASSERT_TRUE(failure) << world.report();
    EXPECT_EQ(failure->code, "peer_lost");
    EXPECT_TRUE(world.names(failure->message, victim)) << failure->message;
    std::printf("rank %d: after %.0f ms\n", rank, static_cast<double>(failure->when - stopped) / 1e6);
  }
  world.rank(victim).signal(SIGCONT);
  const auto failure = world.failure(victim);
  ASSERT_TRUE(failure) << world.report();
  EXPECT_EQ(failure->code, "aborted") << failure->message;
  EXPECT_NE(failure->message.find("stays excluded"), failure->message.npos) << failure->message;
}

INSTANTIATE_TEST_SUITE_P(, Stopped, testing::Values("tcp", "shm"),
                         [](const auto& each) { return each.param; });

// All ranks are stopped for longer than the heartbeat limit, as in a suspended job. No rank counts
// as lost.
TEST(Silence, OfAllRanksAtOnceIsForgiven) {
  FaultWorld world(3, {"idle"}, {.heartbeat = "3s"});
  ASSERT_TRUE(world.ready());
  for (int rank = 0; rank < 3; ++rank) world.rank(rank).signal(SIGSTOP);
  EXPECT_FALSE(world.rank(0).wait(std::chrono::seconds(5)));
  for (int rank = 0; rank < 3; ++rank) world.rank(rank).signal(SIGCONT);
  EXPECT_FALSE(world.rank(0).wait(std::chrono::seconds(5)));
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(world.rank(rank).out(), "ready\n");
}

TEST(Silence, OfARankThatComputesIsNone) {
  FaultWorld world(3, {"compute", "7"}, {.heartbeat = "3s"});
  ASSERT_TRUE(world.ready());
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(world.rank(rank).wait(), 0) << world.rank(rank).report();
    EXPECT_EQ(world.rank(rank).out(), "ready\n");
  }
}

}  // namespace
}  // namespace tutti::test
