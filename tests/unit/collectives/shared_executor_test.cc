#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/collectives/board_world.h"

// This file tests operations of ranks that share memory. One thread plays all ranks, so every order of events
// is possible.
namespace tutti::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = CollectiveKind;

// These are counts of elements. Short data moves through slots, longer data through pages, and the longest
// data through windows, in rounds (see `Board`).
constexpr std::uint64_t in_pages = 2'000;      // too large for a slot
constexpr std::uint64_t in_windows = 6'000;    // too large for a page
constexpr std::uint64_t many_rounds = 60'000;  // takes more rounds than a window has areas

struct Call {
  Kind kind;
  std::uint64_t count;
  int root;
};

std::vector<Call> random_calls(std::mt19937& random, int size) {
  constexpr Kind kinds[] = {Kind::all_reduce, Kind::broadcast, Kind::broadcast, Kind::gather, Kind::barrier};
  constexpr std::uint64_t counts[] = {1, 100, in_pages, in_windows, 0, many_rounds, 3};
  std::vector<Call> calls(40);
  for (Call& call : calls) {
    call = {kinds[random() % std::size(kinds)], counts[random() % std::size(counts)],
            static_cast<int>(random() % static_cast<unsigned>(size))};
    if (call.kind == Kind::barrier) call.count = 0;
  }
  return calls;
}

// Ranks issue operations and make progress in random order, and some ranks run far ahead of others.
TEST(SharedExecutor, WhateverTheOrder) {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    std::mt19937 random(seed);
    const int size = 2 + static_cast<int>(seed % 4);
    BoardWorld world(size);
    world.flat = seed % 3 != 0;
    const std::vector<Call> calls = random_calls(random, size);
    std::vector<std::vector<const BoardWorld::Operation*>> issued(static_cast<std::size_t>(size));
    for (std::size_t left = calls.size() * issued.size(); left != 0;) {
      const auto rank = static_cast<std::size_t>(random() % static_cast<unsigned>(size));
      for (std::uint32_t i = random() % (1u << random() % 7); i > 0; --i) {
        if (issued[rank].size() < calls.size()) {
          const Call& call = calls[issued[rank].size()];
          issued[rank].push_back(&world.issue(static_cast<int>(rank), call.kind, call.count, call.root));
          --left;
        }
        world.executor(static_cast<int>(rank)).advance();
      }
    }
    world.settle();
    for (int rank = 0; rank < size; ++rank) {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const BoardWorld::Operation& operation = *issued[static_cast<std::size_t>(rank)][i];
        ASSERT_EQ(operation.told, 1) << "seed " << seed << " rank " << rank << " operation " << i;
        const Call& call = calls[i];
        ASSERT_EQ(operation.out, BoardWorld::expected(call.kind, rank, size, call.count, call.root))
            << "seed " << seed << " rank " << rank << " operation " << i;
      }
    }
  }
}

// Checks that a root waits for its readers only if all its slots or pages are in use.
// `room` is the number of these slots or pages.
void run_ahead(std::uint64_t count, std::size_t room) {
  BoardWorld world(2);
  std::vector<const BoardWorld::Operation*> roots;
  for (std::size_t i = 0; i < 3 * room; ++i) roots.push_back(&world.issue(0, Kind::broadcast, count));
  std::size_t over = 0;
  for (const auto* root : roots) over += static_cast<std::size_t>(root->told);
  EXPECT_EQ(over, room);
  EXPECT_THAT(world.executor(0).awaited(), ElementsAre(1));
  for (std::size_t i = 0; i < roots.size(); ++i) {
    const auto& reader = world.issue(1, Kind::broadcast, count);
    world.settle();
    EXPECT_EQ(reader.out, BoardWorld::expected(Kind::broadcast, 1, 2, count, 0)) << i;
    EXPECT_EQ(roots[i]->told, 1);
  }
}

TEST(SharedExecutor, ARootRunsAheadOfItsReaders) {
  run_ahead(5, Board::slots);
  run_ahead(in_pages, Board::pages);
}

// Only one operation at a time may use the windows.
TEST(SharedExecutor, WindowsAreNotOverwrittenTooEarly) {
  BoardWorld world(3);
  const auto& first = world.issue(0, Kind::broadcast, in_windows);
  const auto& small = world.issue(0, Kind::broadcast, 5);
  const auto& second = world.issue(0, Kind::broadcast, in_windows);
  EXPECT_EQ(first.told, 1);
  EXPECT_EQ(small.told, 1);
  EXPECT_EQ(second.told, 0);
  EXPECT_THAT(world.executor(0).awaited(), ElementsAre(1, 2));
  const auto expected = BoardWorld::expected(Kind::broadcast, 1, 3, in_windows, 0);
  EXPECT_EQ(world.issue(1, Kind::broadcast, in_windows).out, expected);
  world.settle();
  EXPECT_EQ(second.told, 0);
  EXPECT_THAT(world.executor(0).awaited(), ElementsAre(2));
  EXPECT_EQ(world.issue(2, Kind::broadcast, in_windows).out, expected);
  world.settle();
  EXPECT_EQ(second.told, 1);
}

TEST(SharedExecutor, AwaitedAreThoseThatAreMissing) {
  BoardWorld world(4);
  EXPECT_THAT(world.executor(0).awaited(), IsEmpty());
  world.issue(2, Kind::all_reduce, 10);
  EXPECT_THAT(world.executor(2).awaited(), ElementsAre(0, 1, 3));
  world.issue(1, Kind::all_reduce, 10);
  EXPECT_THAT(world.executor(2).awaited(), ElementsAre(0, 3));
  EXPECT_THAT(world.executor(1).awaited(), ElementsAre(0, 3));
  world.issue(0, Kind::all_reduce, 10);
  world.issue(3, Kind::all_reduce, 10);
  world.settle();
  EXPECT_THAT(world.executor(2).awaited(), IsEmpty());
  // Readers wait for the root, not for each other.
  world.issue(1, Kind::broadcast, 10, 3);
  world.issue(2, Kind::broadcast, 10, 3);
  EXPECT_THAT(world.executor(1).awaited(), ElementsAre(3));
}

TEST(SharedExecutor, AwaitedAreThoseThatHaveNotVoted) {
  BoardWorld world(3);
  world.issue(0, Kind::all_reduce, in_windows, 0, true);
  EXPECT_THAT(world.executor(0).awaited(), ElementsAre(1, 2));
  world.issue(1, Kind::all_reduce, in_windows, 0, true);
  EXPECT_THAT(world.executor(0).awaited(), ElementsAre(2));
  const auto& last = world.issue(2, Kind::all_reduce, in_windows, 0, true);
  world.settle();
  EXPECT_EQ(last.out, BoardWorld::expected(Kind::all_reduce, 2, 3, in_windows, 0));
  EXPECT_EQ(world.executor(2).registered_operations(), 0u);
}

TEST(SharedExecutor, OnlySleepersAreRung) {
  BoardWorld world(2);
  EXPECT_FALSE(world.executor(0).prepare_sleep());  // there is nothing to wait for
  world.executor(0).cancel_sleep();
  world.issue(0, Kind::all_reduce, 10);
  world.issue(1, Kind::all_reduce, 10);
  EXPECT_EQ(world.rings(0), 0);
  // Rank 0 does not sleep, since rank 1's data has arrived in the meantime.
  EXPECT_TRUE(world.executor(0).prepare_sleep());
  world.executor(0).cancel_sleep();
  world.settle();
  world.issue(0, Kind::all_reduce, 10);
  EXPECT_FALSE(world.executor(0).prepare_sleep());
  world.issue(1, Kind::all_reduce, 10);
  EXPECT_GT(world.rings(0), 0);
  EXPECT_EQ(world.rings(1), 0);
  world.executor(0).cancel_sleep();
  world.settle();
  const int rung = world.rings(0);
  world.issue(1, Kind::all_reduce, 10);
  EXPECT_EQ(world.rings(0), rung);
}

// Rank 0 sleeps until rank 1 votes. Rank 1 rings rank 0's bell before it does its own work, so that
// rank 0 does not have to wait for the end of that work.
TEST(SharedExecutor, WhoWaitsForVotesIsRungAtOnce) {
  BoardWorld world(2);
  world.issue(0, Kind::all_reduce, many_rounds, 0, true);
  EXPECT_FALSE(world.executor(0).prepare_sleep());
  world.issue(1, Kind::all_reduce, many_rounds, 0, true);
  EXPECT_EQ(world.rings(0), 1);  // the bell rings only once while rank 0 sleeps
  world.executor(0).cancel_sleep();
  world.settle();
}

// A root sleeps while it waits for its window. Each step of a slow reader rings the root's bell.
TEST(SharedExecutor, WhoWaitsForWindowsIsRung) {
  BoardWorld world(2);
  world.issue(0, Kind::broadcast, in_windows);
  const auto& second = world.issue(0, Kind::broadcast, in_windows);
  EXPECT_FALSE(world.executor(0).prepare_sleep());
  world.issue(1, Kind::broadcast, in_windows);
  EXPECT_GT(world.rings(0), 0);
  world.executor(0).cancel_sleep();
  EXPECT_TRUE(world.executor(0).advance());
  EXPECT_EQ(second.told, 1);
}

// Both ranks broadcast as root, so neither waits for the other. A rank compares its first call at once. Rank
// 1 calls later, so only rank 1 can notice the mismatch.
TEST(SharedExecutor, TwoRootsAreAMismatch) {
  BoardWorld world(2);
  const auto& zero = world.issue(0, Kind::broadcast, 5, 0);
  const auto& one = world.issue(1, Kind::broadcast, 5, 1);
  EXPECT_EQ(zero.told, 1);
  EXPECT_TRUE(zero.status.ok());
  EXPECT_EQ(one.status.code(), Code::mismatch);
  EXPECT_THAT(one.status.message(),
              HasSubstr("rank 0 (host test, pid 0) called broadcast(count=5, int32, root=0)"));
  EXPECT_THAT(one.status.message(),
              HasSubstr("rank 1 (host test, pid 0) called broadcast(count=5, int32, root=1)"));
  EXPECT_EQ(one.status.peer(), 0);
}

// A rank that repeats its previous call postpones the comparison with the other ranks' calls. It compares
// after a few such calls, or earlier if it has no other work.
TEST(SharedExecutor, RepeatedCallsAreComparedLater) {
  BoardWorld world(2);
  for (int i = 0; i < 3; ++i) world.issue(0, Kind::broadcast, 5, 0);
  world.issue(1, Kind::broadcast, 5, 0);
  world.issue(1, Kind::barrier, 0);
  const auto& again = world.issue(0, Kind::broadcast, 5, 0);
  EXPECT_TRUE(again.status.ok());
  const Status idle = world.executor(0).compare();
  EXPECT_EQ(idle.code(), Code::mismatch);
  EXPECT_EQ(idle.peer(), 1);
}

TEST(SharedExecutor, RepeatedCallsAreComparedBeforeLong) {
  BoardWorld world(2);
  int issued = 0;
  for (; issued < 4; ++issued) world.issue(0, Kind::broadcast, 5, 0);
  world.issue(1, Kind::broadcast, 5, 0);
  world.issue(1, Kind::barrier, 0);  // awaits rank 0's second call, so it does not end
  bool told_apart = false;
  for (; issued < static_cast<int>(Board::slots) && !told_apart; ++issued) {
    told_apart = world.issue(0, Kind::broadcast, 5, 0).status.code() == Code::mismatch;
  }
  EXPECT_TRUE(told_apart);
}

// `Disagreement` is a list of calls, with runs of equal calls, and with barriers at the end. One rank
// makes a different call once.
struct Disagreement {
  std::vector<Call> calls;
  std::size_t rank;
  std::size_t number;
  Call odd;

  Disagreement(std::mt19937& random, int size) : rank(random() % static_cast<unsigned>(size)) {
    while (calls.size() < 60) calls.insert(calls.end(), 1 + random() % 40, short_call(random, size));
    number = random() % calls.size();
    do odd = short_call(random, size);
    while (same(odd, calls[number]));
    calls.insert(calls.end(), 20, {Kind::barrier, 0, 0});
  }
  const Call& by(std::size_t who, std::size_t i) const { return who == rank && i == number ? odd : calls[i]; }

 private:
  static Call short_call(std::mt19937& random, int size) {
    Call call = random_calls(random, size).front();
    call.count = std::min(call.count, in_windows);
    return call;
  }
  static bool same(const Call& a, const Call& b) {
    return a.kind == b.kind && a.count == b.count && (a.root == b.root || a.kind == Kind::barrier);
  }
};

using Issued = std::vector<std::vector<const BoardWorld::Operation*>>;

bool somebody_was_told(const Issued& issued) {
  for (const auto& operations : issued) {
    for (const auto* operation : operations) {
      if (operation->status.code() == Code::mismatch) return true;
    }
  }
  return false;
}

// Runs the ranks in random order, until one rank learns of a mismatch or no rank can make progress.
Issued play(BoardWorld& world, const Disagreement& plan, std::mt19937& random) {
  Issued issued(static_cast<std::size_t>(world.size()));
  for (int idle = 0; idle < 1000; ++idle) {
    const std::size_t rank = random() % issued.size();
    for (std::uint32_t i = random() % (1u << random() % 7); i > 0; --i) {
      const std::size_t number = issued[rank].size();
      if (world.executor(static_cast<int>(rank)).advance()) idle = 0;
      if (somebody_was_told(issued)) return issued;
      if (number == plan.calls.size()) break;
      const Call& call = plan.by(rank, number);
      issued[rank].push_back(&world.issue(static_cast<int>(rank), call.kind, call.count, call.root));
      if (somebody_was_told(issued)) return issued;
      idle = 0;
    }
  }
  return issued;
}

// Some rank must learn of the mismatch in every order of events. No rank may accept data that was
// not meant for its call.
TEST(SharedExecutor, OneCallThatDiffersIsToldApart) {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    BoardWorld world(2 + static_cast<int>(seed % 4));
    world.flat = seed % 5 != 0;
    const Disagreement plan(random, world.size());
    const Issued issued = play(world, plan, random);
    EXPECT_TRUE(somebody_was_told(issued)) << "seed " << seed;
    for (std::size_t rank = 0; rank < issued.size(); ++rank) {
      for (std::size_t i = 0; i < issued[rank].size(); ++i) {
        const BoardWorld::Operation& operation = *issued[rank][i];
        if (operation.told == 0 || !operation.status.ok()) continue;
        const Call& call = plan.by(rank, i);
        ASSERT_EQ(operation.out, BoardWorld::expected(call.kind, static_cast<int>(rank), world.size(),
                                                      call.count, call.root))
            << "seed " << seed << " rank " << rank << " operation " << i;
      }
    }
  }
}

// Even if other ranks write arbitrary data, this rank must neither crash nor access other memory.
// (The sanitizers check this.)
TEST(SharedExecutor, ACorruptBoardDoesNoHarm) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    BoardWorld world(3);
    Board& board = world.executor(0).board();
    const auto scribble = [&](int numbers) {
      for (std::byte& byte : world.memory().first(world.memory().size() - 3 * 64 * 1024)) {
        byte = static_cast<std::byte>(random());
      }
      // The phases (progress marks) that are written here look valid, so the rank reads the data next to
      // them.
      for (int rank = 1; rank < 3; ++rank) {
        for (int number = 1; number <= numbers; ++number) {
          board.slot(rank, static_cast<std::uint64_t>(number))
              .phase.store(static_cast<std::uint64_t>(number) << Board::phase_bits | random() % 5);
        }
      }
    };
    for (int number = 1; number <= 6; ++number) {
      if (number % 2 == 0) scribble(number);
      const Kind kind = number % 3 == 0 ? Kind::broadcast : Kind::all_reduce;
      const auto& operation = world.issue(0, kind, number % 2 == 0 ? 10 : in_windows, 0, number % 3 == 1);
      scribble(number);
      world.executor(0).advance();
      static_cast<void>(world.executor(0).awaited());
      static_cast<void>(world.executor(0).prepare_sleep());
      world.executor(0).cancel_sleep();
      const Status heard = board.heard();
      EXPECT_TRUE(heard.ok() || !to_string(heard.code()).empty());
      EXPECT_LT(heard.message().size(), 2000u);
      if (operation.status.ok()) continue;
      EXPECT_EQ(operation.status.code(), Code::mismatch);
      break;  // the rank and its group have failed
    }
    world.executor(0).cancel();
  }
}

// A rank remembers the other ranks' counts of finished operations. It reads a count again only when
// necessary, since the count's owner keeps using the same cache line.
TEST(Board, WhatAllHaveFinishedIsRemembered) {
  BoardWorld world(3);
  Board& board = world.executor(0).board();
  EXPECT_FALSE(board.all_finished(1));
  world.executor(1).board().finish(7);
  world.executor(2).board().finish(9);
  EXPECT_TRUE(board.all_finished(1));
  world.executor(1).board().finish(0);  // a real rank never counts down
  EXPECT_TRUE(board.all_finished(7));
  EXPECT_FALSE(board.all_finished(8));
}

// Other ranks can write to the memory that holds a rank's own vote. The forged votes in this test
// ask rank 0 for a form of the operation that rank 0 does not have.
TEST(SharedExecutor, AForgedVoteFailsTheOperation) {
  BoardWorld world(3);
  constexpr std::uint64_t count = 1000;
  constexpr std::uint64_t bytes = count * sizeof(std::int32_t);
  const std::vector<std::uint64_t> parts(3, 2 * bytes);
  std::vector<std::byte> memory(GroupMemory::segment_bytes(parts));
  std::vector<int> rings(3);
  world.allocations().add(
      std::make_shared<GroupMemory>(std::make_unique<PlainSegment>(memory, rings), 0, parts));
  std::deque<BoardWorld::Operation*> operations;
  for (int rank = 0; rank < 3; ++rank) {
    operations.push_back(&world.issue(rank, CollectiveKind::all_reduce, count, 0, true));
    operations.back()->run.input_bytes = operations.back()->run.output_bytes = bytes;
  }
  const Place places[] = {{1, 0, bytes}, {1, bytes, bytes}};
  for (int rank = 0; rank < 3; ++rank) {
    std::memcpy(world.executor(0).board().slot(rank, 1).payload, places, sizeof places);
  }
  world.executor(0).advance();
  EXPECT_EQ(operations[0]->told, 1);
  EXPECT_EQ(operations[0]->status.code(), Code::protocol_error) << operations[0]->status.to_string();
  world.executor(0).cancel();
}

TEST(Board, TheReasonOfAFailureIsHeardOnce) {
  BoardWorld world(3);
  EXPECT_TRUE(world.executor(0).board().heard().ok());
  world.executor(2).board().fail(Status(Code::aborted, std::string(5000, 'x'), 1));
  world.executor(2).board().fail(Status(Code::timeout, "later"));
  EXPECT_TRUE(world.executor(2).board().heard().ok());  // a rank does not receive its own failure
  EXPECT_EQ(world.rings(0), 1);
  EXPECT_EQ(world.rings(1), 1);
  EXPECT_EQ(world.rings(2), 0);
  const Status heard = world.executor(0).board().heard();
  EXPECT_EQ(heard.code(), Code::aborted);
  EXPECT_EQ(heard.peer(), 1);
  EXPECT_THAT(heard.message(), testing::StartsWith("xxx"));
  EXPECT_LT(heard.message().size(), 1100u);
  EXPECT_TRUE(world.executor(0).board().heard().ok());
}

}  // namespace
}  // namespace tutti::test
