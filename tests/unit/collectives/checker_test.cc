#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/prove/schedule_checker.h"

// This file tests the checker itself: it must find each kind of mistake.
namespace tutti::test {
namespace {

using testing::HasSubstr;

std::vector<Schedule> build(const Algorithm& algorithm, const ScheduleCase& test, const Tuning& tuning = {}) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < test.base.size; ++rank) {
    schedules.push_back(build_schedule(algorithm, test.at(rank), tuning));
  }
  return schedules;
}

const Algorithm& all_reduce(std::string_view name) {
  return *find_algorithm(CollectiveKind::all_reduce, name);
}

template <class Emit>
std::vector<Schedule> emit_two(const ScheduleCase& test, Emit emit) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < 2; ++rank) {
    ScheduleBuilder builder(test.at(rank));
    emit(builder, rank, 1 - rank);
    schedules.push_back(std::move(builder).finish());
  }
  return schedules;
}

constexpr Slice own{BufferId::input, 0, 4};
constexpr Slice result{BufferId::output, 0, 4};

ScheduleCase pair_case() { return ScheduleCase(CollectiveKind::all_reduce, 2, 4, 0, false); }

MessageSide side(int rank) { return rank == 0 ? MessageSide::right : MessageSide::left; }

TEST(ScheduleChecker, AcceptsWhatIsRight) {
  const auto schedules = emit_two(pair_case(), [](ScheduleBuilder& builder, int rank, int peer) {
    builder.send(peer, own);
    builder.recv_reduce(peer, own, result, side(rank));
  });
  EXPECT_EQ(check_schedules(schedules, pair_case(), true, 1), "");
}

TEST(ScheduleChecker, FindsADeadlockOfSynchronousSends) {
  const auto schedules = emit_two(pair_case(), [](ScheduleBuilder& builder, int rank, int peer) {
    builder.copy(own, result);
    builder.send(peer, result);
    builder.recv_reduce(peer, result, result, side(rank));  // must wait until this rank's send has ended
  });
  EXPECT_THAT(check_schedules(schedules, pair_case(), true, 1), HasSubstr("cannot be carried out"));
}

TEST(ScheduleChecker, FindsDifferentTreesOnDifferentRanks) {
  const auto schedules = emit_two(pair_case(), [](ScheduleBuilder& builder, int, int peer) {
    builder.send(peer, own);
    builder.recv_reduce(peer, own, result, MessageSide::right);
  });
  EXPECT_THAT(check_schedules(schedules, pair_case(), false, 1),
              HasSubstr("computed otherwise than on rank 0"));
}

TEST(ScheduleChecker, FindsAMissingContribution) {
  const auto schedules = emit_two(pair_case(), [](ScheduleBuilder& builder, int rank, int peer) {
    builder.send(peer, own);
    builder.recv_reduce(peer, {BufferId::input, 0, 3}, {BufferId::output, 0, 3}, side(rank));
    builder.copy({BufferId::input, 3, 1}, {BufferId::output, 3, 1});
  });
  EXPECT_THAT(check_schedules(schedules, pair_case(), true, 1), HasSubstr("expects another length"));
  const auto lonely =
      emit_two(pair_case(), [](ScheduleBuilder& builder, int, int) { builder.copy(own, result); });
  EXPECT_THAT(check_schedules(lonely, pair_case(), true, 1), HasSubstr("output element 0 is wrong"));
}

TEST(ScheduleChecker, FindsAContributionTakenTwice) {
  const auto schedules = emit_two(pair_case(), [](ScheduleBuilder& builder, int rank, int peer) {
    builder.send(peer, own);
    builder.recv_reduce(peer, own, result, side(rank));
    builder.reduce(result, own, result);
  });
  EXPECT_THAT(check_schedules(schedules, pair_case(), false, 1), HasSubstr("is wrong"));
}

TEST(ScheduleChecker, FindsElementsMixedUp) {
  const auto schedules = emit_two(pair_case(), [](ScheduleBuilder& builder, int, int) {
    builder.reduce({BufferId::input, 0, 2}, {BufferId::input, 2, 2}, {BufferId::output, 0, 2});
  });
  EXPECT_THAT(check_schedules(schedules, pair_case(), false, 1), HasSubstr("does not belong together"));
}

TEST(ScheduleChecker, FindsReadsOfUndefinedMemory) {
  const auto schedules = emit_two(pair_case(), [](ScheduleBuilder& builder, int, int peer) {
    builder.send(peer, result);
    builder.recv(peer, builder.scratch(4));
  });
  EXPECT_THAT(check_schedules(schedules, pair_case(), false, 1), HasSubstr("is undefined"));
}

TEST(ScheduleChecker, FindsWritesToTheInputAndOutOfBounds) {
  const auto scribble = emit_two(pair_case(), [](ScheduleBuilder& builder, int rank, int peer) {
    builder.send(peer, own);
    builder.recv_reduce(peer, own, result, side(rank));
    builder.copy(result, own);
  });
  EXPECT_THAT(check_schedules(scribble, pair_case(), true, 1),
              HasSubstr("memory beside the output has changed"));
  const auto outside = emit_two(pair_case(), [](ScheduleBuilder& builder, int, int) {
    builder.copy(own, {BufferId::output, 1, 4});
  });
  EXPECT_THAT(check_schedules(outside, pair_case(), true, 1), HasSubstr("outside its buffer"));
}

TEST(ScheduleChecker, FindsPartialOverlap) {
  const ScheduleCase test(CollectiveKind::all_reduce, 2, 4, 0, true);
  const auto schedules = emit_two(test, [](ScheduleBuilder& builder, int, int) {
    builder.copy({BufferId::input, 0, 2}, {BufferId::output, 1, 2});
  });
  EXPECT_THAT(check_schedules(schedules, test, true, 1), HasSubstr("overlaps partly"));
}

// Removes one dependency. Returns false if there is no edge with that index.
bool remove_edge(Schedule& schedule, std::size_t edge) {
  if (edge >= schedule.successors.size()) return false;
  for (Step& step : schedule.steps) {
    if (edge < step.first_successor || edge >= step.first_successor + step.successor_count) continue;
    Step& after = schedule.steps[schedule.successors[edge]];
    if (--after.dependencies == 0) schedule.ready.push_back(schedule.successors[edge]);
    std::swap(schedule.successors[edge],
              schedule.successors[step.first_successor + step.successor_count - 1]);
    --step.successor_count;
  }
  return true;
}

// A dependency is redundant if it follows from other dependencies. The builder leaves redundant
// dependencies out, and short schedules like these keep none. So the checker must find an error if
// any dependency is removed. (Longer schedules may keep some redundant dependencies, since the
// builder looks only one step back.)
TEST(ScheduleChecker, FindsEveryMissingDependency) {
  for (const char* name : {"recursive_doubling", "rabenseifner", "ring"}) {
    const ScheduleCase test(CollectiveKind::all_reduce, 4, 8, 0, false);
    const auto right = build(all_reduce(name), test);
    ASSERT_EQ(check_schedules(right, test, false, 1), "");
    std::size_t edges = 0;
    for (;; ++edges) {
      auto broken = right;
      if (!remove_edge(broken[1], edges)) break;
      EXPECT_THAT(check_schedules(broken, test, false, 1), HasSubstr("may ")) << name << " edge " << edges;
    }
    EXPECT_GT(edges, 0u);
  }
}

TEST(ScheduleChecker, FindsWrongNumbersAndSides) {
  const ScheduleCase test(CollectiveKind::all_reduce, 4, 8, 0, false);
  const auto right = build(all_reduce("recursive_doubling"), test);
  for (std::size_t i = 0; i < right[2].steps.size(); ++i) {
    auto misnumbered = right;
    ++misnumbered[2].steps[i].index;
    EXPECT_NE(check_schedules(misnumbered, test, false, 1), "");
    if (right[2].steps[i].kind != StepKind::recv_reduce) continue;
    auto swapped = right;
    MessageSide& which = swapped[2].steps[i].message_side;
    which = which == MessageSide::left ? MessageSide::right : MessageSide::left;
    EXPECT_NE(check_schedules(swapped, test, true, 1), "");
  }
}

TEST(ScheduleChecker, FindsABarrierThatLetsGoEarly) {
  const ScheduleCase test(CollectiveKind::barrier, 4, 0, 0, false);
  const Algorithm& dissemination = *find_algorithm(CollectiveKind::barrier, "dissemination");
  const auto right = build(dissemination, test);
  EXPECT_EQ(check_schedules(right, test, false, 1), "");
  auto broken = right;
  for (Schedule& schedule : broken) {
    while (remove_edge(schedule, 0) && schedule.steps[1].successor_count > 0) {
    }
  }
  EXPECT_THAT(check_schedules(broken, test, false, 1), HasSubstr("without having heard"));
}

TEST(ScheduleChecker, ComparesMessages) {
  const ScheduleCase test(CollectiveKind::all_reduce, 4, 8, 0, false);
  const auto a = build(all_reduce("ring"), test);
  EXPECT_TRUE(same_messages(a[0], build(all_reduce("ring"), test)[0]));
  EXPECT_FALSE(same_messages(a[0], build(all_reduce("rabenseifner"), test)[0]));
  EXPECT_FALSE(same_messages(a[0], build(all_reduce("ring"), test, {.segment_bytes = 4})[0]));
}

}  // namespace
}  // namespace tutti::test
