// Tests SIGKILL of any rank that the store already knows, while the ranks meet. Long before their
// deadline, all other ranks learn which rank was killed.
//
//   build/dev/bin/tests/faults --gtest_filter='*MeetingKill*' --runs 200 --seed 7

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/faults/fault_world.h"

namespace tutti::test {
namespace {

using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;

constexpr const char* known = "the store knows ";

struct Start {
  int size;
  std::string transport;
  int absent;         // a rank that is stopped before it can arrive, or -1 for none
  std::string store;  // the address of a store in another process; empty if rank 0 serves the store
};

FaultWorld::Options options_of(const Start& start) {
  FaultWorld::Options options{.transport = start.transport, .more = {{"TUTTI_LOG_LEVEL", "debug"}}};
  if (start.store.empty()) return options;
  options.more["TUTTI_INIT_METHOD"] = std::nullopt;
  options.more["TUTTI_STORE"] = start.store;
  return options;
}

bool is_known(Process& rank) {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(60);
  while (rank.err().find(known) == std::string::npos) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(microseconds(50));
  }
  return true;
}

// Returns how long an undisturbed start takes from the moment when the store knows all ranks.
microseconds undisturbed(const Start& start) {
  FaultWorld world(start.size, {"idle"}, options_of(start));
  for (int rank = 0; rank < start.size; ++rank) EXPECT_TRUE(is_known(world.rank(rank)));
  const Clock::time_point begin = Clock::now();
  EXPECT_TRUE(world.ready());
  return std::chrono::duration_cast<microseconds>(Clock::now() - begin);
}

void kill_one(const Start& start, std::mt19937_64& random, std::vector<double>& noticed) {
  const microseconds longest = undisturbed(start) * 5 / 4;
  FaultWorld world(start.size, {"idle"}, options_of(start));
  if (start.absent >= 0) world.rank(start.absent).signal(SIGSTOP);
  int victim = static_cast<int>(random() % static_cast<unsigned>(start.size));
  if (victim == start.absent) victim = (victim + 1) % start.size;
  const microseconds moment(random() % static_cast<std::uint64_t>(longest.count()));
  SCOPED_TRACE("killing rank " + std::to_string(victim) + " of " + std::to_string(start.size) + " over " +
               start.transport + (start.store.empty() ? " " : " at a store, ") +
               std::to_string(moment.count()) + " us after it was known");
  for (int rank = 0; rank < start.size; ++rank) {
    if (rank == start.absent) continue;
    ASSERT_TRUE(is_known(world.rank(rank))) << world.report();
  }
  std::this_thread::sleep_for(moment);
  const std::int64_t killed = monotonic_now();
  world.rank(victim).signal(SIGKILL);
  for (int rank = 0; rank < start.size; ++rank) {
    if (rank == victim || rank == start.absent) continue;
    const auto failure = world.failure(rank);
    ASSERT_TRUE(failure) << "rank " << rank << " has not noticed\n" << world.report();
    EXPECT_EQ(failure->code, "peer_lost") << world.report();
    EXPECT_TRUE(world.names(failure->message, victim)) << failure->message << "\n" << world.report();
    noticed.push_back(static_cast<double>(failure->when - killed) / 1e6);
  }
}

TEST(MeetingKill, IsNoticedByAllAndNamed) {
  const std::uint64_t seed = argument("seed", std::random_device{}());
  const std::uint64_t runs = argument("runs", 6);
  std::mt19937_64 random(seed);
  std::vector<double> noticed;
  const std::string port = std::to_string(unused_port());
  Process store({std::string(TUTTI_BIN_DIR) + "/tutti", "store", "--port", port});
  ASSERT_TRUE(store.wait_for_output("serving at ")) << store.report();
  for (std::uint64_t run = 0; run < runs && !HasFailure(); ++run) {
    const int size = static_cast<int>(2 + random() % 5);
    const bool all = size == 2 || random() % 3 != 0;
    const int absent = all ? -1 : static_cast<int>(1 + random() % static_cast<unsigned>(size - 1));
    const bool served = random() % 3 == 0;
    kill_one({size, random() % 2 == 0 ? "tcp" : "shm", absent, served ? "127.0.0.1:" + port : ""}, random,
             noticed);
  }
  std::printf("%llu runs, seed %llu: noticed after %.1f ms (median), %.1f ms (95 %%), %.1f ms (all)\n",
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(seed),
              percentile(noticed, 50), percentile(noticed, 95), percentile(noticed, 100));
}

}  // namespace
}  // namespace tutti::test
