// Tests ranks that cannot meet, since they contradict each other or rank 0 refuses.
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/rendezvous/exchange_world.h"

namespace tutti {
namespace {

TEST(Exchange, ADuplicateRankIsNamedWithBothHosts) {
  MemoryStore store;
  std::vector<Introduction> ranks = world_of(3);
  ranks[2].rank = 1;  // host2 also claims rank 1, so rank 2 is missing
  for (const Outcome& outcome : meet(store, ranks)) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.status().code(), Code::mismatch);
    EXPECT_EQ(outcome.status().peer(), 1);
    EXPECT_SAYS(outcome.status().message(), "rank 1 is taken twice");
    EXPECT_SAYS(outcome.status().message(), "on host host1 by pid 101");
    EXPECT_SAYS(outcome.status().message(), "on host host2 by pid 102");
  }
  EXPECT_EQ(store.get("present", ample()).take(), "0");
  EXPECT_FALSE(store.exists("table", ample()).take());
  expect_complete(meet(store, world_of(3)));  // the failed meeting has left no keys
}

// Both jobs have a rank 1. Only the rank 1 of rank 0's job can take part in the meeting.
TEST(Exchange, AnotherJobIsRefusedAndDoesNotDisturb) {
  MemoryStore store;
  ExchangeOptions options;
  options.single_use = true;
  std::vector<Introduction> ranks = world_of(2);
  for (Introduction& rank : ranks) rank.job = {{"SLURM_JOB_ID", "17"}};
  Introduction stranger = rank_of(1, 2);
  stranger.host = "elsewhere";
  stranger.job = {{"SLURM_JOB_ID", "18"}, {"PMIX_NAMESPACE", "x"}};
  Outcome zero = Status(Code::internal, "not run");
  std::thread first([&] { zero = exchange(store, ranks[0], options, ample()); });
  const Outcome refused = exchange(store, stranger, options, ample());
  EXPECT_EQ(refused.status().code(), Code::mismatch);
  EXPECT_SAYS(refused.status().message(), "SLURM_JOB_ID is '17' on rank 0 (host host0, pid 100)");
  EXPECT_SAYS(refused.status().message(), "'18' on rank 1 (host elsewhere, pid 101)");
  const Outcome one = exchange(store, ranks[1], options, ample());
  first.join();
  expect_complete({zero, one});
}

TEST(Exchange, JobsAreToldApartByWhatBothKnow) {
  Introduction a = rank_of(0, 2), b = rank_of(1, 2);
  const auto same = [&](std::map<std::string, std::string> left, std::map<std::string, std::string> right) {
    a.job = std::move(left);
    b.job = std::move(right);
    return check_same_job(*decode_introduction(encode_introduction(a)), b).ok();
  };
  EXPECT_TRUE(same({}, {{"SLURM_JOB_ID", "1"}}));
  EXPECT_TRUE(same({{"PMIX_NAMESPACE", "1"}}, {{"SLURM_JOB_ID", "1"}}));
  EXPECT_FALSE(same({{"PMIX_NAMESPACE", "1"}, {"SLURM_JOB_ID", "1"}}, {{"PMIX_NAMESPACE", "2"}}));
  EXPECT_FALSE(
      same({{"TUTTI_JOB_ID", "1"}, {"SLURM_JOB_ID", "1"}}, {{"TUTTI_JOB_ID", "2"}, {"SLURM_JOB_ID", "1"}}));
  EXPECT_TRUE(
      same({{"TUTTI_JOB_ID", "1"}, {"SLURM_JOB_ID", "1"}}, {{"TUTTI_JOB_ID", "1"}, {"SLURM_JOB_ID", "2"}}));
}

// A rank is started twice if `tutti run` starts a script that starts the ranks' program twice.
TEST(Exchange, ARankThatIsStartedTwiceIsRefused) {
  MemoryStore store;
  const pid_t other = fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    pause();
    _exit(0);
  }
  std::vector<Introduction> ranks = world_of(2);
  ranks[1].pid = other;
  const std::string table = encode_table({encode_introduction(ranks[0]), encode_introduction(ranks[1])});
  ASSERT_TRUE(store.set("table", table, ample()).ok());
  const Outcome second = exchange(store, rank_of(1, 2), {}, ample());
  EXPECT_EQ(second.status().code(), Code::mismatch) << second.status().to_string();
  EXPECT_SAYS(second.status().message(), "rank 1 is taken twice");
  EXPECT_SAYS(second.status().message(), "pid " + std::to_string(other));
  EXPECT_SAYS(second.status().message(), "pid 101");
  kill(other, SIGKILL);
  EXPECT_EQ(waitpid(other, nullptr, 0), other);
}

TEST(Exchange, ADuplicateRankZero) {
  MemoryStore store;
  std::vector<Introduction> ranks = world_of(2);
  ranks[1].rank = 0;
  for (const Outcome& outcome : meet(store, ranks))
    EXPECT_SAYS(outcome.status().message(), "rank 0 is taken twice");
}

TEST(Exchange, WorldSizesThatDiffer) {
  MemoryStore store;
  for (const Outcome& outcome : meet(store, {rank_of(0, 2), rank_of(2, 3)})) {
    EXPECT_EQ(outcome.status().code(), Code::mismatch);
    EXPECT_SAYS(outcome.status().message(), "rank 0 (host host0, pid 100)");
    EXPECT_SAYS(outcome.status().message(), "rank 2 (host host2, pid 102)");
    EXPECT_TRUE(outcome.status().message().find("world size 2 vs 3") != std::string::npos ||
                outcome.status().message().find("world size 3 vs 2") != std::string::npos)
        << outcome.status().to_string();
  }
}

TEST(Exchange, SettingsThatDiffer) {
  MemoryStore store;
  const std::vector<Introduction> ranks = {
      rank_of(0, 3, "TUTTI_SHM_WINDOW=1M;TUTTI_ALGORITHM=;"),
      rank_of(1, 3, "TUTTI_SHM_WINDOW=1M;TUTTI_ALGORITHM=;"),
      rank_of(2, 3, "TUTTI_SHM_WINDOW=1M;TUTTI_ALGORITHM=all_reduce:ring;")};
  for (const Outcome& outcome : meet(store, ranks)) {
    EXPECT_EQ(outcome.status().code(), Code::mismatch);
    EXPECT_SAYS(outcome.status().message(), "TUTTI_ALGORITHM is");
    EXPECT_SAYS(outcome.status().message(), "not set on");
    EXPECT_SAYS(outcome.status().message(), "'all_reduce:ring' on rank 2 (host host2, pid 102)");
  }
}

TEST(Exchange, VersionsThatDiffer) {
  MemoryStore store;
  std::vector<Introduction> ranks = world_of(2);
  ranks[1].version = "2";
  for (const Outcome& outcome : meet(store, ranks)) EXPECT_SAYS(outcome.status().message(), "version");
}

TEST(Exchange, WhatRankZeroDoesNotApproveFailsOnAllRanks) {
  for (const bool single_use : {false, true}) {
    MemoryStore store;
    std::atomic<int> asked = 0;
    ExchangeOptions options{.single_use = single_use};
    options.approve = [&](const std::vector<PeerInfo>& ranks) {
      ++asked;
      return Status(Code::unreachable, "no road to " + ranks.back().host, ranks.back().rank);
    };
    for (const Outcome& outcome : meet(store, world_of(4), options)) {
      EXPECT_EQ(outcome.status().code(), Code::unreachable);
      EXPECT_EQ(outcome.status().peer(), 3);
      EXPECT_SAYS(outcome.status().message(), "no road to host3");
    }
    EXPECT_EQ(asked, 1);
  }
}

}  // namespace
}  // namespace tutti
