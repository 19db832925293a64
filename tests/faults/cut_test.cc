// Tests hosts that are cut off from each other. Each host is a network namespace.

#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/faults/fault_world.h"
#include "tests/support/network_hosts.h"

namespace tutti::test {
namespace {

// `Cut` runs ranks on three hosts, and cuts off one of them.
class Cut : public testing::Test {
 protected:
  void start(const std::vector<int>& hosts, const std::vector<std::string>& words) {
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      std::vector<std::string> command = {std::string(TUTTI_BIN_DIR) + "/tests/fault_rank"};
      command.insert(command.end(), words.begin(), words.end());
      ranks_.emplace_back(
          network_.on(hosts[rank], command),
          Process::Environment{{"TUTTI_RANK", std::to_string(rank)},
                               {"TUTTI_WORLD_SIZE", std::to_string(hosts.size())},
                               {"TUTTI_INIT_METHOD", "tcp://" + network_.address(hosts[0]) + ":29620"},
                               {"TUTTI_HEARTBEAT", "3s"}});
    }
    for (Process& rank : ranks_) ASSERT_TRUE(rank.wait_for_output("ready\n")) << rank.report();
  }
  void expect_lost(std::size_t rank, const std::string& others) {
    Process& process = ranks_[rank];
    ASSERT_TRUE(process.wait_for_output("failed ")) << process.report();
    EXPECT_THAT(process.out(), testing::HasSubstr(" peer_lost ")) << process.report();
    EXPECT_THAT(process.out(), testing::ContainsRegex("rank [" + others + "] .host ")) << process.report();
  }

  const NetworkHosts network_{3};
  std::deque<Process> ranks_;
};

// One of three hosts is cut off. The ranks of the other two hosts continue. The ranks of the
// cut-off host cannot continue, since they are a minority.
TEST_F(Cut, OffHostIsLostAndTheOthersGoOn) {
  if (!network_.problem().empty()) GTEST_SKIP() << network_.problem();
  start({0, 0, 1, 1, 2}, {"shrink", "3", "0", "loop", "all_reduce", "1000"});
  const std::int64_t begin = monotonic_now();
  network_.cut(1);
  for (const std::size_t rank : {0u, 1u, 4u}) {
    expect_lost(rank, "23");
    ASSERT_TRUE(ranks_[rank].wait_for_output("shrunk 3 ")) << ranks_[rank].report();
    EXPECT_EQ(ranks_[rank].wait(), 0) << ranks_[rank].report();
  }
  std::printf("three ranks go on %.0f ms after the cut\n",
              static_cast<double>(monotonic_now() - begin) / 1e6);
  for (const std::size_t rank : {2u, 3u}) {
    expect_lost(rank, "014");
    EXPECT_EQ(ranks_[rank].wait(), 1) << ranks_[rank].report();
    EXPECT_THAT(ranks_[rank].err(), testing::HasSubstr("only 2 of 5 ranks are left"));
  }
}

TEST_F(Cut, OffRankZero) {
  if (!network_.problem().empty()) GTEST_SKIP() << network_.problem();
  start({0, 1, 2}, {"shrink", "2", "0", "idle"});
  network_.cut(0);
  for (const std::size_t rank : {1u, 2u}) {
    expect_lost(rank, "0");
    ASSERT_TRUE(ranks_[rank].wait_for_output("shrunk 2 ")) << ranks_[rank].report();
  }
  expect_lost(0, "12");
  EXPECT_EQ(ranks_[0].wait(), 1) << ranks_[0].report();
}

}  // namespace
}  // namespace tutti::test
