// Tests how the ranks of a job meet over a store.
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/rendezvous/exchange_world.h"

namespace tutti {
namespace {

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
