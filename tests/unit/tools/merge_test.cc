#include "tools/debug/merge.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/debug/dump.h"
#include "tools/debug/groups.h"

namespace tutti::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t now = 1'000'000'000;

RankDump dump_of(int rank, int size) {
  RankDump dump;
  dump.rank = rank;
  dump.size = size;
  dump.host = "h";
  dump.pid = 100 + rank;
  dump.time_us = now;
  RankDump::Communicator communicator;
  communicator.context = 1;
  communicator.status = "ok";
  for (int i = 0; i < size; ++i) communicator.ranks.push_back(i);
  dump.communicators.push_back(communicator);
  return dump;
}

void over(RankDump& dump, const std::string& call) {
  auto& communicator = dump.communicators.front();
  communicator.operations.push_back({.number = communicator.issued++,
                                     .call = call,
                                     .issued_us = now - 9'000'000,
                                     .ended_us = now - 8'000'000});
}

void running(RankDump& dump, const std::string& call, std::vector<int> waiting_for) {
  auto& communicator = dump.communicators.front();
  for (const int rank : waiting_for) {
    communicator.names[rank] = "rank " + std::to_string(rank) + " (host far, pid 9)";
  }
  communicator.operations.push_back({.number = communicator.issued++,
                                     .call = call,
                                     .running = true,
                                     .issued_us = now - 7'000'000,
                                     .waiting_for = std::move(waiting_for)});
}

std::vector<RankDump> world(int size) {
  std::vector<RankDump> dumps;
  for (int rank = 0; rank < size; ++rank) {
    dumps.push_back(dump_of(rank, size));
    over(dumps.back(), "barrier()");
  }
  return dumps;
}

TEST(Merge, NothingGoesOn) {
  EXPECT_EQ(merge(world(4)), "nothing is in flight, and all ranks have made equally many calls\n");
}

// Rank 1 waits for rank 0, rank 0 for rank 3, and rank 3 for rank 2. So rank 2 is behind.
TEST(Merge, NamesWhoIsBehind) {
  auto dumps = world(4);
  running(dumps[0], "all_reduce(count=4)", {3});
  running(dumps[1], "all_reduce(count=4)", {0});
  running(dumps[3], "all_reduce(count=4)", {2});
  const std::string text = merge(dumps);
  EXPECT_THAT(text, HasSubstr("ranks 0, 1, 3: in #1 all_reduce(count=4), for 7.000 s\n"));
  EXPECT_THAT(text, HasSubstr("rank 2: has left #0 barrier(), 8.000 s ago\n"));
  EXPECT_THAT(text, HasSubstr("rank 2 (host h, pid 102) is BEHIND: ranks 0, 1, 3 wait for it in #1 "
                              "all_reduce(count=4); its last call was #0 barrier()"));
  EXPECT_THAT(text, Not(HasSubstr("CIRCLE")));
}

// Ranks that share a situation share a line.
TEST(Merge, SpeaksOfSeveralRanksInThePlural) {
  std::vector<RankDump> dumps;
  for (int rank = 0; rank < 5; ++rank) dumps.push_back(dump_of(rank, 5));
  for (const int rank : {2, 3, 4}) over(dumps[static_cast<std::size_t>(rank)], "barrier()");
  running(dumps[4], "all_reduce(count=4)", {2});
  const std::string text = merge(dumps);
  EXPECT_THAT(text, HasSubstr("ranks 0, 1: have called nothing\n"));
  EXPECT_THAT(text, HasSubstr("ranks 2, 3: have left #0 barrier(), 8.000 s ago\n"));
  EXPECT_THAT(text, HasSubstr("rank 4: in #1 all_reduce(count=4), for 7.000 s\n"));
}

TEST(Merge, NamesWhoHasNoDump) {
  auto dumps = world(3);
  running(dumps[0], "barrier()", {2});
  running(dumps[1], "barrier()", {0});
  dumps.pop_back();
  const std::string text = merge(dumps);
  EXPECT_THAT(text, HasSubstr("rank 2: no dump\n"));
  EXPECT_THAT(
      text, HasSubstr("rank 2 (host far, pid 9) is BEHIND: rank 0 waits for it in #1 barrier(); there is no "
                      "dump of it"));
}

TEST(Merge, NamesDifferentCalls) {
  auto dumps = world(3);
  running(dumps[0], "broadcast(root=0)", {});
  running(dumps[1], "all_reduce(count=4)", {0});
  running(dumps[2], "all_reduce(count=4)", {1});
  EXPECT_THAT(merge(dumps), HasSubstr("MISMATCH in #1: ranks 1, 2 called all_reduce(count=4); rank 0 called "
                                      "broadcast(root=0)\n"));
}

// Rank 1 is itself in an operation. The report still names this rank, since it makes no progress.
TEST(Merge, NamesWhoMakesNoProgress) {
  auto dumps = world(2);
  running(dumps[1], "all_reduce(count=4)", {});
  over(dumps[0], "all_reduce(count=4)");
  running(dumps[0], "barrier()", {1});
  dumps[1].progress = false;
  EXPECT_THAT(merge(dumps),
              HasSubstr("it is itself in #1 all_reduce(count=4); one of its threads stays in a callback"));
}

// Rank 0 waits for rank 1 in one communicator, and rank 1 waits for rank 0 in another communicator.
TEST(Merge, NamesACircle) {
  auto dumps = world(2);
  for (RankDump& dump : dumps) {
    dump.communicators.push_back(dump.communicators.front());
    dump.communicators.back().context = 2;
  }
  running(dumps[0], "barrier()", {1});
  std::swap(dumps[1].communicators[0], dumps[1].communicators[1]);
  running(dumps[1], "all_reduce(count=1)", {0});
  const std::string text = merge(dumps);
  EXPECT_THAT(text,
              HasSubstr("CIRCLE: rank 0 (host h, pid 100) waits for rank 1 in #1 barrier(); rank 1 (host h, "
                        "pid 101) waits for rank 0 in #1 all_reduce(count=1)"));
  EXPECT_THAT(text, Not(HasSubstr("BEHIND")));
}

TEST(Merge, AllAreInIt) {
  auto dumps = world(2);
  running(dumps[0], "barrier()", {1});
  running(dumps[1], "barrier()", {0});
  EXPECT_THAT(merge(dumps), HasSubstr("no rank is behind"));
}

// Sets the time of `dump` (`time_us`), and the time at which its last operation began (`since_us`).
void move_to(RankDump& dump, std::int64_t time_us, std::int64_t since_us) {
  dump.time_us = time_us;
  dump.communicators.front().operations.back().issued_us = since_us;
}

// The ranks were asked for their dumps at different moments. Rank 1 was asked later, so its dump shows more
// calls. Rank 0 is not behind.
TEST(Merge, MomentsAreNoDelay) {
  auto dumps = world(2);
  running(dumps[0], "barrier()", {1});
  for (int i = 0; i < 10; ++i) over(dumps[1], "barrier()");
  running(dumps[1], "barrier()", {0});
  move_to(dumps[0], now, now - 50);
  move_to(dumps[1], now + 12'000, now + 11'000);
  const std::string text = merge(dumps);
  EXPECT_THAT(
      text, HasSubstr("no rank seems to be stuck: the ranks were asked at different moments, 0.012 s apart, "
                      "and no rank had waited for another one for 0.100 s"));
  EXPECT_THAT(text, Not(HasSubstr("BEHIND")));
}

// Rank 0 was asked a minute after rank 1, and rank 0's operation began in this minute. Rank 1 may
// have called the operation since its own dump. So rank 1 does not count as behind.
TEST(Merge, WhatBeganLaterIsNoDelay) {
  auto dumps = world(2);
  running(dumps[0], "barrier()", {1});
  move_to(dumps[0], now + 60'000'000, now + 1'000'000);
  EXPECT_THAT(merge(dumps), HasSubstr("no rank seems to be stuck"));
  move_to(dumps[0], now + 60'000'000, now - 1'000'000);
  EXPECT_THAT(merge(dumps), HasSubstr("rank 1 (host h, pid 101) is BEHIND"));
}

// Rank 1 was asked a minute after rank 0, and still had not called rank 0's operation. So rank 1 is
// behind.
TEST(Merge, WhoIsSeenLaterIsBehindAllTheSame) {
  auto dumps = world(2);
  running(dumps[0], "barrier()", {1});
  move_to(dumps[0], now, now - 200'000);
  dumps[1].time_us = now + 60'000'000;
  EXPECT_THAT(merge(dumps), HasSubstr("rank 1 (host h, pid 101) is BEHIND"));
}

TEST(Merge, ASendAndItsAnswerAreNoCircle) {
  auto dumps = world(2);
  for (const int rank : {0, 1}) {
    const std::int64_t seen = now + rank * 5'000;
    dumps[static_cast<std::size_t>(rank)].time_us = seen;
    dumps[static_cast<std::size_t>(rank)].communicators.front().transfers.push_back(
        {.call = "recv(count=1)", .running = true, .issued_us = seen - 100, .waiting_for = {1 - rank}});
  }
  const std::string text = merge(dumps);
  EXPECT_THAT(text, HasSubstr("no rank seems to be stuck"));
  EXPECT_THAT(text, Not(HasSubstr("CIRCLE")));
}

// If a driver did not answer for a second, its rank was in the operation for at least that second.
TEST(Merge, NoAnswerIsAWait) {
  auto dumps = world(2);
  running(dumps[0], "barrier()", {});
  move_to(dumps[0], now, 0);
  EXPECT_THAT(merge(dumps), HasSubstr("no rank seems to be stuck"));
  dumps[0].progress = false;
  EXPECT_THAT(merge(dumps), HasSubstr("rank 1 (host h, pid 101) is BEHIND"));
}

// A failed communicator no longer knows which ranks its operations waited for.
TEST(Merge, WhoLeftNoDumpIsNamedAfterADeath) {
  auto dumps = world(3);
  for (RankDump& dump : dumps) {
    running(dump, "barrier()", {});
    dump.communicators[0].status = "peer_lost: rank 1 is gone";
  }
  dumps.erase(dumps.begin() + 1);
  const std::string text = merge(dumps);
  EXPECT_THAT(
      text,
      HasSubstr("there is no dump of rank 1: it has ended, is stopped, or its dump was not given; ranks "
                "0, 2 are in #1 barrier(), and may wait for it\n"));
  EXPECT_THAT(text, Not(HasSubstr("no rank is")));
}

TEST(Merge, NothingGoesOnInTheDumpsThatThereAre) {
  auto dumps = world(3);
  dumps.pop_back();
  EXPECT_EQ(
      merge(dumps),
      "nothing is in flight, and these ranks have made equally many calls\n"
      "there is no dump of rank 2: it has ended, is stopped, or its dump was not given; no other is in an "
      "operation with it\n");
}

TEST(Merge, ARankMayHaveLeftACommunicator) {
  auto dumps = world(2);
  running(dumps[0], "barrier()", {1});
  dumps[1].communicators.clear();
  EXPECT_THAT(merge(dumps), HasSubstr("rank 1: not in it yet, or no longer\n"));
}

TEST(Merge, FailuresAreShown) {
  auto dumps = world(2);
  dumps[0].communicators[0].status = "peer_lost: rank 1 is gone";
  EXPECT_THAT(merge(dumps), HasSubstr("rank 0: peer_lost: rank 1 is gone\n"));
}

TEST(Merge, RanksInShort) {
  EXPECT_EQ(format_ranks({0, 1, 2, 5, 7, 8}), "0-2, 5, 7, 8");
  EXPECT_EQ(format_ranks({}), "");
}

TEST(Dump, RefusesWhatIsNone) {
  for (const std::string text : {"", "{", "[]", "{}", "null", R"({"job": 3})",
                                 R"({"job":"","rank":0,"size":1,"host":"","pid":1,"reason":"","time_us":0,)"
                                 R"("progress":true,"communicators":[{"context":-1}]})"}) {
    const auto dump = parse_dump(text);
    ASSERT_FALSE(dump.ok()) << text;
    EXPECT_EQ(dump.status().code(), Code::invalid_argument);
  }
}

}  // namespace
}  // namespace tutti::tools
