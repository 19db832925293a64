// Tests ranks that do not arrive, give up or are interrupted.
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/rendezvous/exchange_world.h"

namespace tutti {
namespace {

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

}  // namespace
}  // namespace tutti
