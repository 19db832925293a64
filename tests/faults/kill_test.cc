// Tests SIGKILL of any rank during any collective. All other ranks learn which rank was killed, and continue
// without it.
//
//   build/dev/bin/tests/faults --gtest_filter='*Kill*' --runs 50 --seed 7

#include <csignal>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/faults/fault_world.h"

namespace tutti::test {
namespace {

const std::vector<std::string> kinds = {"all_reduce", "reduce",  "broadcast", "all_gather",
                                        "scan",       "scatter", "exscan",    "reduce_scatter",
                                        "all_to_all", "gather",  "barrier",   "send"};

class Kill : public testing::TestWithParam<std::tuple<int, std::string>> {};

// `Times` says, in milliseconds, how long the other ranks took to notice the death, and then to shrink.
struct Times {
  std::vector<double> noticed, shrunk;
};

// Kills a random rank at a random moment of a random collective of random size. Adds the measured times to
// `times`.
void kill_one(int size, const std::string& transport, std::mt19937_64& random, Times& times) {
  const int victim = static_cast<int>(random() % static_cast<unsigned>(size));
  const std::string kind = kinds[random() % kinds.size()];
  const std::string count = std::to_string(std::size_t{1} << random() % 17);
  FaultWorld world(size, {"shrink", std::to_string(size - 1), "1", "loop", kind, count},
                   {.transport = transport});
  SCOPED_TRACE(kind + " of " + count + ", killing rank " + std::to_string(victim));
  if (!world.ready()) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
  const std::int64_t killed = monotonic_now();
  world.rank(victim).signal(SIGKILL);
  for (int rank = 0; rank < size; ++rank) {
    if (rank == victim) continue;
    const auto failure = world.failure(rank);
    ASSERT_TRUE(failure) << "rank " << rank << " has not noticed\n" << world.report();
    EXPECT_EQ(failure->code, "peer_lost") << world.report();
    EXPECT_TRUE(world.names(failure->message, victim)) << failure->message;
    times.noticed.push_back(static_cast<double>(failure->when - killed) / 1e6);
    EXPECT_EQ(world.rank(rank).wait(), 0) << world.rank(rank).report();
    const auto shrunk = world.shrunk(rank, size - 1);
    ASSERT_TRUE(shrunk) << world.report();
    times.shrunk.push_back(*shrunk);
  }
}

TEST_P(Kill, IsNoticedByAllAndNamed) {
  const auto& [size, transport] = GetParam();
  const std::uint64_t seed = argument("seed", std::random_device{}());
  const std::uint64_t runs = argument("runs", 5);
  std::mt19937_64 random(seed);
  Times times;
  for (std::uint64_t run = 0; run < runs && !HasFailure(); ++run) kill_one(size, transport, random, times);
  std::printf(
      "%d ranks over %s, %llu runs, seed %llu: noticed after %.1f ms (median), %.1f ms (95 %%), %.1f ms "
      "(all); "
      "shrunk in %.1f ms (median), %.1f ms (95 %%), %.1f ms (all)\n",
      size, transport.c_str(), static_cast<unsigned long long>(runs), static_cast<unsigned long long>(seed),
      percentile(times.noticed, 50), percentile(times.noticed, 95), percentile(times.noticed, 100),
      percentile(times.shrunk, 50), percentile(times.shrunk, 95), percentile(times.shrunk, 100));
}

INSTANTIATE_TEST_SUITE_P(, Kill, testing::Combine(testing::Values(2, 5, 16), testing::Values("tcp", "shm")),
                         [](const auto& each) {
                           return std::get<1>(each.param) + std::to_string(std::get<0>(each.param));
                         });

// No rank makes a call, so no rank waits for the victim. All ranks must still notice its death.
TEST(KillIdle, IsNoticedByAll) {
  for (const int size : {2, 3, 16}) {
    FaultWorld world(size, {"idle"}, {});
    ASSERT_TRUE(world.ready());
    const int victim = size / 2;
    const std::int64_t killed = monotonic_now();
    world.rank(victim).signal(SIGKILL);
    double longest = 0;
    for (int rank = 0; rank < size; ++rank) {
      if (rank == victim) continue;
      const auto failure = world.failure(rank);
      ASSERT_TRUE(failure) << world.report();
      EXPECT_EQ(failure->code, "peer_lost");
      EXPECT_TRUE(world.names(failure->message, victim)) << failure->message;
      longest = std::max(longest, static_cast<double>(failure->when - killed) / 1e6);
    }
    std::printf("%d idle ranks: all have noticed after %.1f ms\n", size, longest);
  }
}

// Half of the ranks are in a communicator without the victim. They must also notice its death.
TEST(KillSplit, IsNoticedInAllCommunicators) {
  for (const std::string transport : {"tcp", "shm"}) {
    FaultWorld world(6, {"split", "all_reduce", "1000"}, {.transport = transport});
    ASSERT_TRUE(world.ready());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    world.rank(3).signal(SIGKILL);
    for (const int rank : {0, 1, 2, 4, 5}) {
      const auto failure = world.failure(rank);
      ASSERT_TRUE(failure) << world.report();
      EXPECT_EQ(failure->code, "peer_lost");
      EXPECT_TRUE(world.names(failure->message, 3)) << failure->message;
    }
  }
}

}  // namespace
}  // namespace tutti::test
