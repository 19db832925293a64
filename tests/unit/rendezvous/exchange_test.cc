#include "rendezvous/meeting/exchange.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rendezvous/store/memory/memory_store.h"
#include "rendezvous/store/prefix_store.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Outcome = Result<std::vector<PeerInfo>>;

Deadline ample() { return Deadline::after(seconds(60)); }

Introduction rank_of(int rank, int world_size, const std::string& digest = "TUTTI_SHM_WINDOW=1M;") {
  Introduction self = describe_this_process();
  self.rank = rank;
  self.world_size = world_size;
  self.host = "host" + std::to_string(rank);
  self.pid = 100 + rank;
  self.addresses = {{"tcp", "address " + std::to_string(rank)}, {"shm", std::string("\0\xff", 2)}};
  self.offloads = {{"nccl", "device " + std::to_string(rank)}};
  self.wire_digest = digest;
  self.version = "1";
  return self;
}

// Runs each exchange in its own thread.
std::vector<Outcome> meet(Store& store, const std::vector<Introduction>& ranks,
                          const ExchangeOptions& options = {}, Deadline deadline = ample()) {
  std::vector<Outcome> outcomes(ranks.size(), Status(Code::internal, "not run"));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] { outcomes[i] = exchange(store, ranks[i], options, deadline); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

std::vector<Introduction> world_of(int size) {
  std::vector<Introduction> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(rank_of(rank, size));
  return ranks;
}

void expect_complete(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
    ASSERT_EQ(outcome->size(), outcomes.size());
    for (std::size_t i = 0; i < outcome->size(); ++i) {
      const PeerInfo& peer = (*outcome)[i];
      EXPECT_EQ(peer.rank, static_cast<int>(i));
      EXPECT_EQ(peer.host, "host" + std::to_string(i));
      EXPECT_EQ(peer.addresses.at("tcp"), "address " + std::to_string(i));
      EXPECT_EQ(peer.offloads.at("nccl"), "device " + std::to_string(i));
      EXPECT_EQ(peer.addresses.at("shm"), std::string("\0\xff", 2));
    }
  }
}

#define EXPECT_SAYS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

class ExchangeWorlds : public testing::TestWithParam<int> {};

TEST_P(ExchangeWorlds, EverybodyLearnsOfEverybody) {
  MemoryStore store;
  expect_complete(meet(store, world_of(GetParam())));
  for (const char* key : {"session", "table", "rank/0", "done"})
    EXPECT_FALSE(store.exists(key, ample()).take()) << key;
  EXPECT_EQ(store.get("present", ample()).take(), "0");
}

TEST_P(ExchangeWorlds, TheSameKeysServeAgain) {
  MemoryStore store;
  std::vector<std::thread> threads;
  std::vector<int> completed(static_cast<std::size_t>(GetParam()), 0);
  // There is no barrier between rounds. So a fast rank may find keys of the previous meeting that
  // other ranks have not left yet.
  for (int rank = 0; rank < GetParam(); ++rank) {
    threads.emplace_back([&, rank] {
      for (int round = 0; round < 10; ++round) {
        const Introduction self = rank_of(rank, GetParam());
        const Outcome outcome = exchange(store, self, {}, ample());
        ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
        ++completed[static_cast<std::size_t>(rank)];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int rounds : completed) EXPECT_EQ(rounds, 10);
}

TEST_P(ExchangeWorlds, SingleUse) {
  MemoryStore store;
  ExchangeOptions options;
  options.single_use = true;
  expect_complete(meet(store, world_of(GetParam()), options));
  EXPECT_TRUE(store.exists("done", ample()).take());
}

INSTANTIATE_TEST_SUITE_P(Sizes, ExchangeWorlds, testing::Values(1, 2, 3, 4, 7, 8, 16));

// The facts of offloads must be short and printable, since error messages show them.
TEST(Exchange, FactsOfOffloadsAreShortAndPrintable) {
  const auto code_of = [](std::map<std::string, std::string> offloads) {
    Introduction self = rank_of(0, 1);
    self.offloads = std::move(offloads);
    return decode_introduction(encode_introduction(self)).status().code();
  };
  EXPECT_EQ(code_of({{"nccl", std::string(max_offload_facts, '~')}, {"mpi", ""}}), Code::ok);
  EXPECT_EQ(code_of({{"nccl", std::string(max_offload_facts + 1, '~')}}), Code::protocol_error);
  EXPECT_EQ(code_of({{"nccl", "a\nb"}}), Code::protocol_error);
  EXPECT_EQ(code_of({{"n\033", "a"}}), Code::protocol_error);
  std::map<std::string, std::string> many;
  for (std::size_t i = 0; i <= max_offloads; ++i) many.emplace(std::to_string(i), "");
  EXPECT_EQ(code_of(many), Code::protocol_error);
}

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

// Rank 0 arrives last and times out first. It reports the missing ranks to all ranks.
TEST(Exchange, MissingRanksAreNamedOnAllRanks) {
  MemoryStore store;
  const std::vector<int> others{1, 3, 4, 6};
  std::vector<Outcome> outcomes(others.size() + 1, Status(Code::internal, "not run"));
  std::vector<std::thread> threads;
  std::vector<std::string> arrived;
  for (std::size_t i = 0; i < others.size(); ++i) {
    threads.emplace_back([&, i] { outcomes[i] = exchange(store, rank_of(others[i], 7), {}, ample()); });
    arrived.push_back("rank/" + std::to_string(others[i]));
  }
  EXPECT_TRUE(store.wait(arrived, ample()).ok());
  outcomes.back() = exchange(store, rank_of(0, 7), {}, Deadline::after(seconds(3)));
  for (std::thread& thread : threads) thread.join();
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.status().code(), Code::timeout);
    EXPECT_SAYS(outcome.status().message(), "ranks 2, 5 have not arrived");
    EXPECT_EQ(outcome.status().peer(), 2);
  }
}

// Three of four ranks have arrived and wait for the fourth rank.
TEST(Exchange, ARankThatIsInterruptedEndsTheMeeting) {
  for (const int interrupted : {0, 2}) {
    MemoryStore store;
    const std::vector<std::string> arrived{"rank/0", "rank/1", "rank/2"};
    ExchangeOptions options;
    options.interrupted = [&] { return store.wait(arrived, Deadline::after(milliseconds(0))).ok(); };
    std::vector<Outcome> outcomes(3, Status(Code::internal, "not run"));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        const ExchangeOptions& own = rank == interrupted ? options : ExchangeOptions{};
        outcomes[static_cast<std::size_t>(rank)] = exchange(store, rank_of(rank, 4), own, ample());
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.status().code(), Code::aborted);
      EXPECT_EQ(outcome.status().peer(), interrupted);
      EXPECT_SAYS(outcome.status().message(), "was interrupted while the ranks met");
    }
  }
}

TEST(Exchange, WhoIsInterruptedDoesNotWaitForAnEarlierMeetingToEnd) {
  MemoryStore store;
  const std::string table =
      encode_table({encode_introduction(rank_of(0, 2)), encode_introduction(rank_of(1, 2))});
  ASSERT_TRUE(store.set("table", table, ample()).ok());
  ASSERT_TRUE(store.add("present", 1, ample()).ok());  // one rank has not left the earlier meeting
  ExchangeOptions options;
  options.interrupted = [] { return true; };
  const Outcome outcome = exchange(store, rank_of(1, 2), options, Deadline::after(seconds(20)));
  EXPECT_EQ(outcome.status().code(), Code::aborted) << outcome.status().to_string();
  EXPECT_EQ(outcome.status().peer(), 1);
}

// The last rank arrives while another rank is being interrupted. So rank 0 publishes the table of all ranks
// during the interruption.
TEST(Exchange, ARankThatIsInterruptedAsAllHaveMetEndsItForThoseWhoConnect) {
  for (const bool single_use : {false, true}) {
    MemoryStore store;
    std::promise<void> interrupting, gone;
    const std::shared_future<void> last_may_come = interrupting.get_future().share();
    const std::shared_future<void> connection_breaks = gone.get_future().share();
    ExchangeOptions options;
    options.single_use = single_use;
    options.connect = [&](const std::vector<PeerInfo>&) {
      connection_breaks.wait();
      return Status(Code::peer_lost, "rank 1's connection is closed", 1);
    };
    ExchangeOptions interrupted = options;
    interrupted.interrupted = [&] {
      if (!store.exists("rank/1", ample()).take()) return false;
      interrupting.set_value();
      return store.get("table", ample()).ok();
    };
    std::vector<Outcome> outcomes(3, Status(Code::internal, "not run"));
    const auto come = [&](int rank, const ExchangeOptions& own) {
      outcomes[static_cast<std::size_t>(rank)] = exchange(store, rank_of(rank, 3), own, ample());
    };
    std::thread zero([&] { come(0, options); });
    std::thread one([&] {
      come(1, interrupted);
      gone.set_value();
    });
    last_may_come.wait();
    come(2, options);
    zero.join();
    one.join();
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.status().code(), Code::aborted) << outcome.status().to_string();
      EXPECT_EQ(outcome.status().peer(), 1);
      EXPECT_SAYS(outcome.status().message(), "was interrupted while the ranks met");
    }
  }
}

TEST(Exchange, AMissingRankZeroIsNamed) {
  MemoryStore store;
  std::vector<Introduction> ranks = world_of(3);
  ranks.erase(ranks.begin());
  const std::vector<Outcome> outcomes = meet(store, ranks, {}, Deadline::after(seconds(2)));
  // The rank that gives up first leaves the meeting. So the other rank may also report that rank as
  // missing.
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.status().code(), Code::timeout);
    EXPECT_EQ(outcome.status().peer(), 0) << outcome.status().to_string();
  }
}

// Rank 1 gives up first, which also ends the meeting for rank 0. Rank 1 still counts as arrived.
TEST(Exchange, ARankThatGivesUpIsNotMissing) {
  MemoryStore store;
  Outcome impatient = Status(Code::internal, "not run");
  std::thread other([&] { impatient = exchange(store, rank_of(1, 3), {}, Deadline::after(seconds(1))); });
  const Outcome patient = exchange(store, rank_of(0, 3), {}, Deadline::after(seconds(5)));
  other.join();
  for (const Outcome& outcome : {impatient, patient}) {
    EXPECT_EQ(outcome.status().code(), Code::timeout);
    EXPECT_TRUE(outcome.status().message().starts_with("rank 2 has not arrived"))
        << outcome.status().message();
  }
}

TEST(Exchange, ALateRankOfALargeWorldIsFound) {
  MemoryStore store;
  const Introduction self = rank_of(0, 1000);
  for (int rank = 1; rank < 1000; ++rank) {
    if (rank == 777) continue;
    const Introduction other = rank_of(rank, 1000);
    ASSERT_TRUE(store.set("rank/" + std::to_string(rank), encode_introduction(other), ample()).ok());
  }
  const Outcome outcome = exchange(store, self, {}, Deadline::after(seconds(5)));
  EXPECT_SAYS(outcome.status().message(), "rank 777 has not arrived");
}

TEST(Exchange, WhoeverComesTooLateIsTold) {
  MemoryStore store;
  ExchangeOptions options;
  options.single_use = true;
  expect_complete(meet(store, world_of(2), options));
  const Outcome late = exchange(store, rank_of(1, 2), options, ample());
  EXPECT_EQ(late.status().code(), Code::unreachable);
  EXPECT_SAYS(late.status().message(), "have already met");
  EXPECT_SAYS(late.status().message(), "rank 1 (host host1, pid 101)");
  // A late rank with another world size gets the same error.
  EXPECT_EQ(exchange(store, rank_of(2, 3), options, ample()).status().code(), Code::unreachable);
}

TEST(Exchange, ARepeatedAttemptIsNoDuplicate) {
  MemoryStore store;
  const std::vector<Introduction> ranks = world_of(2);
  Introduction before = ranks[1];
  before.addresses["tcp"] = "an earlier address";
  // An earlier attempt with a broken connection may have left this key.
  const std::string earlier = encode_introduction(before);
  ASSERT_TRUE(store.set("rank/1", earlier, ample()).ok());
  Outcome one = Status(Code::internal, "not run");
  std::thread second([&] { one = exchange(store, ranks[1], {}, ample()); });
  while (store.get("rank/1", ample()).take() == earlier) std::this_thread::yield();
  std::vector<Outcome> outcomes;
  outcomes.push_back(exchange(store, ranks[0], {}, ample()));
  second.join();
  outcomes.push_back(one);
  expect_complete(outcomes);
}

TEST(Exchange, ATableWithAnEarlierAddressIsRefused) {
  MemoryStore store;
  const std::vector<Introduction> ranks = world_of(2);
  Introduction before = ranks[1];
  before.addresses["tcp"] = "an earlier address";
  ASSERT_TRUE(
      store.set("table", encode_table({encode_introduction(ranks[0]), encode_introduction(before)}), ample())
          .ok());
  EXPECT_EQ(exchange(store, ranks[1], {}, ample()).status().code(), Code::aborted);
}

TEST(Exchange, RankZeroIsCalledWhileItWaits) {
  MemoryStore store;
  int calls = 0;
  ExchangeOptions options;
  options.while_waiting = [&] { ++calls; };
  EXPECT_FALSE(exchange(store, rank_of(0, 2), options, Deadline::after(seconds(3))).ok());
  EXPECT_GT(calls, 0);
}

TEST(Exchange, AHostsNameControlsNoTerminal) {
  MemoryStore store;
  std::vector<Introduction> ranks = world_of(2);
  ranks[1].host = "\x1b[2Jhost\n";
  ranks[1].wire_digest = "TUTTI_SHM_WINDOW=\x1b[31m;";
  for (const Outcome& outcome : meet(store, ranks)) {
    EXPECT_EQ(outcome.status().code(), Code::mismatch) << outcome.status().to_string();
    EXPECT_NE(outcome.status().message().find("\\x1b[2Jhost\\n"), std::string::npos)
        << outcome.status().message();
    EXPECT_EQ(outcome.status().message().find_first_of("\x1b\n"), std::string::npos);
  }
}

}  // namespace
}  // namespace tutti
