// Tests ranks that meet under difficult conditions: with few descriptors, without a loopback
// interface, behind a firewall, or with a stopped rank.
#include <chrono>
#include <csignal>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/faults/fault_world.h"
#include "tests/faults/own_network.h"
#include "tests/support/process.h"

namespace tutti::test {
namespace {

using Clock = std::chrono::steady_clock;

const std::string program = std::string(TUTTI_BIN_DIR) + "/tests/fault_rank";

Process rank_of_two(int rank, const std::vector<std::string>& command, const std::string& limit = "8s") {
  return Process(command, {{"TUTTI_RANK", std::to_string(rank)},
                           {"TUTTI_WORLD_SIZE", "2"},
                           {"TUTTI_INIT_TIMEOUT", limit},
                           {"TUTTI_INIT_METHOD", "tcp://127.0.0.1:" + std::to_string(unused_port())}});
}

// These limits leave too few descriptors for a store that accepts connections. The largest limit may be just
// enough. In that case the error only says that rank 1 has not arrived.
TEST(MeetingWithFewDescriptors, SaysSo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need descriptors of their own";
#endif
  for (const std::string count : {"8", "14", "24"}) {
    Process rank = rank_of_two(0, {"sh", "-c", "ulimit -n " + count + " && exec " + program + " idle"});
    EXPECT_EQ(rank.wait(), 1) << rank.report();
    if (count == "24" && rank.out().find("rank 1 has not arrived") != std::string::npos) continue;
    EXPECT_NE(rank.out().find("used up the " + count + " file descriptors"), std::string::npos)
        << rank.report();
    EXPECT_NE(rank.out().find("ulimit -n"), std::string::npos) << rank.report();
  }
}

TEST(MeetingWithoutLoopback, SaysSo) {
  Process probe({"unshare", "-n", "true"});
  if (probe.wait() != 0) GTEST_SKIP() << "no network namespace can be made here: " << probe.err();
  const std::string launcher = std::string(TUTTI_BIN_DIR) + "/tutti";
  const Clock::time_point begin = Clock::now();
  for (const int number : {0, 1}) {
    Process rank = rank_of_two(number, {"unshare", "-n", program, "idle"}, "200s");
    EXPECT_EQ(rank.wait(), 1) << rank.report();
    EXPECT_NE(rank.out().find("loopback interface is down or has no address 127.0.0.1"), std::string::npos)
        << rank.report();
  }
  Process job({"unshare", "-n", launcher, "run", "-n", "2", "--", program, "idle"},
              {{"TUTTI_INIT_TIMEOUT", "200s"}});
  EXPECT_EQ(job.wait(), 1) << job.report();
  EXPECT_NE(job.out().find("loopback interface is down or has no address 127.0.0.1"), std::string::npos)
      << job.report();
  // Ranks that cannot meet must not wait until their time limit.
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(100));
}

// The ranks meet at the store, but cannot connect to each other. The errors name `init` as the call.
TEST(MeetingWithoutAWay, SpeaksOfInit) {
  FaultWorld world(
      2, {"idle"},
      {.transport = "tcp",
       .more = {{"TUTTI_BIND_ADDRESS", "127.0.0.1"}, {"TUTTI_ADVERTISE_ADDRESS", "127.0.0.99"}}});
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto failure = world.failure(rank);
    ASSERT_TRUE(failure) << world.report();
    EXPECT_EQ(failure->code, "peer_lost") << failure->message;
    // All ranks report the error of the rank that noticed the problem first.
    EXPECT_TRUE(failure->message.starts_with("rank ")) << failure->message;
    EXPECT_NE(failure->message.find(": init() "), std::string::npos) << failure->message;
  }
}

// `BehindAFirewall` runs two ranks in a separate network. A firewall blocks the ports of each rank in
// `blocked`.
class BehindAFirewall {
 public:
  BehindAFirewall(const std::string& verdict, const std::vector<int>& blocked, const std::string& limit) {
    why_not_ = enter_own_network();
    std::string rules = "add table inet t; add chain inet t c { type filter hook output priority 0 ; }";
    for (const int rank : blocked) rules += "; add rule inet t c tcp dport " + ports(rank) + " " + verdict;
    if (!why_not_.empty()) return;
    Process firewall({"nft", rules});
    if (firewall.wait() != 0) why_not_ = "no firewall can be set here: " + firewall.err();
    if (!why_not_.empty()) return;
    const std::string place = "tcp://127.0.0.1:" + std::to_string(unused_port());
    for (const int rank : {0, 1}) {
      ranks_.emplace_back(std::vector<std::string>{program, "idle"},
                          Process::Environment{{"TUTTI_RANK", std::to_string(rank)},
                                               {"TUTTI_WORLD_SIZE", "2"},
                                               {"TUTTI_INIT_METHOD", place},
                                               {"TUTTI_INIT_TIMEOUT", limit},
                                               {"TUTTI_TRANSPORTS", "shm"},
                                               {"TUTTI_PORT_RANGE", ports(rank)}});
    }
  }
  const std::string& why_not() const { return why_not_; }
  std::deque<Process>& ranks() { return ranks_; }

 private:
  static std::string ports(int rank) {
    const int first = 30000 + 1000 * rank;
    return std::to_string(first) + "-" + std::to_string(first + 9);
  }

  std::string why_not_;
  std::deque<Process> ranks_;
};

// This function starts the ranks in a new thread, because processes inherit the network of the
// thread that starts them.
void behind_a_firewall(const std::string& verdict, const std::vector<int>& blocked, const std::string& limit,
                       const std::function<void(std::deque<Process>&)>& check) {
  std::string why_not;
  std::thread([&] {
    BehindAFirewall world(verdict, blocked, limit);
    why_not = world.why_not();
    if (why_not.empty()) check(world.ranks());
  }).join();
  if (!why_not.empty()) GTEST_SKIP() << why_not;
}

TEST(MeetingBehindAFirewall, ThatDropsNamesAddressAndVariableWithinTheLimit) {
  behind_a_firewall("drop", {0, 1}, "4s", [](std::deque<Process>& ranks) {
    const Clock::time_point begin = Clock::now();
    for (Process& rank : ranks) {
      EXPECT_EQ(rank.wait(), 1) << rank.report();
      for (const char* part :
           {"init() was not over in time", " at 127.0.0.1:3", "nothing answered", "TUTTI_PORT_RANGE"})
        EXPECT_NE(rank.out().find(part), std::string::npos) << part << " in " << rank.report();
    }
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(9));
  });
}

TEST(MeetingBehindAFirewall, ThatRefusesIsNamedOnBothSides) {
  behind_a_firewall("reject with tcp reset", {0, 1}, "20s", [](std::deque<Process>& ranks) {
    for (Process& rank : ranks) {
      EXPECT_EQ(rank.wait(), 1) << rank.report();
      for (const char* part : {" at 127.0.0.1:3", "Connection refused", "TUTTI_PORT_RANGE"})
        EXPECT_NE(rank.out().find(part), std::string::npos) << part << " in " << rank.report();
    }
  });
}

TEST(MeetingBehindAFirewall, ThatRefusesOneDirectionIsNoHindrance) {
  behind_a_firewall("reject with tcp reset", {1}, "60s", [](std::deque<Process>& ranks) {
    for (Process& rank : ranks) EXPECT_TRUE(rank.wait_for_output("ready\n")) << rank.report();
  });
}

// One rank is stopped after it has arrived, but before all ranks have finished meeting. The other ranks end
// within their time limit, plus a little time in which they tell each other of the failure.
TEST(MeetingWithAStoppedRank, KeepsTheLimit) {
  for (const int victim : {0, 1}) {
    FaultWorld world(3, {"idle"}, {.more = {{"TUTTI_INIT_TIMEOUT", "4s"}, {"TUTTI_LOG_LEVEL", "debug"}}});
    const Clock::time_point begin = Clock::now();
    while (world.rank(victim).err().find("has arrived") == std::string::npos &&
           Clock::now() - begin < std::chrono::seconds(60))
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    world.rank(victim).signal(SIGSTOP);
    for (int rank = 0; rank < world.size(); ++rank) {
      if (rank == victim) continue;
      // This rank may have finished meeting before the victim was stopped.
      const bool ended = world.rank(rank).wait_for_output("failed ") || world.rank(rank).out() == "ready\n";
      EXPECT_TRUE(ended) << world.report();
    }
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(7)) << world.report();
  }
}

}  // namespace
}  // namespace tutti::test
