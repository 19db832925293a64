#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/schedule_builder.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Slice in(std::uint64_t offset, std::uint64_t count) { return {BufferId::input, offset, count}; }
Slice out(std::uint64_t offset, std::uint64_t count) { return {BufferId::output, offset, count}; }

Problem problem(CollectiveKind kind = CollectiveKind::all_reduce, bool in_place = false) {
  Problem p;
  p.kind = kind;
  p.rank = 1;
  p.size = 4;
  p.root = 1;
  p.count = 100;
  p.element_size = 4;
  p.in_place = in_place;
  return p;
}

// Returns the steps that `step` waits for directly.
std::vector<std::uint32_t> after(const Schedule& schedule, std::uint32_t step) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    for (const std::uint32_t successor : schedule.successors_of(schedule.steps[i])) {
      if (successor == step) result.push_back(i);
    }
  }
  EXPECT_EQ(result.size(), schedule.steps[step].dependencies);
  return result;
}

TEST(ScheduleBuilder, ReadWaitsForWrite) {
  ScheduleBuilder builder(problem());
  builder.recv(0, out(0, 10));
  builder.send(2, out(5, 10));
  builder.send(3, out(10, 10));
  const Schedule schedule = std::move(builder).finish();
  EXPECT_THAT(after(schedule, 1), ElementsAre(0));
  EXPECT_THAT(after(schedule, 2), IsEmpty());
  EXPECT_THAT(schedule.ready, ElementsAre(0, 2));
}

TEST(ScheduleBuilder, WriteWaitsForReads) {
  ScheduleBuilder builder(problem());
  builder.send(0, out(0, 10));
  builder.send(2, out(5, 10));
  builder.recv(3, out(8, 1));
  builder.recv(3, out(20, 1));
  const Schedule schedule = std::move(builder).finish();
  EXPECT_THAT(after(schedule, 2), ElementsAre(0, 1));
  EXPECT_THAT(after(schedule, 3), IsEmpty());
}

TEST(ScheduleBuilder, WriteWaitsForWrite) {
  ScheduleBuilder builder(problem());
  builder.recv(0, out(0, 10));
  builder.recv(2, out(10, 10));
  builder.recv(3, out(9, 2));
  const Schedule schedule = std::move(builder).finish();
  EXPECT_THAT(after(schedule, 2), ElementsAre(0, 1));
}

TEST(ScheduleBuilder, ReadsOfTheSameSliceAreIndependent) {
  ScheduleBuilder builder(problem());
  for (int peer : {0, 2, 3}) builder.send(peer, in(0, 100));
  const Schedule schedule = std::move(builder).finish();
  EXPECT_EQ(schedule.ready.size(), 3u);
  EXPECT_THAT(schedule.successors, IsEmpty());
}

TEST(ScheduleBuilder, WhatFollowsFromOtherDependenciesIsNotNamed) {
  ScheduleBuilder builder(problem());
  builder.recv(0, out(0, 10));                                      // 0
  builder.send(2, out(0, 10));                                      // 1: waits for 0
  builder.recv(3, out(0, 10));                                      // 2: waits for 1, so also for 0
  builder.recv_reduce(0, out(0, 5), out(0, 5), MessageSide::left);  // 3: waits for 2
  builder.reduce(out(0, 5), out(5, 5), out(20, 5));                 // 4: waits for 3, so also for 2
  const Schedule schedule = std::move(builder).finish();
  EXPECT_THAT(after(schedule, 2), ElementsAre(1));
  EXPECT_THAT(after(schedule, 3), ElementsAre(2));
  EXPECT_THAT(after(schedule, 4), ElementsAre(3));
}

TEST(ScheduleBuilder, MessagesAreNumberedByPeerAndDirection) {
  ScheduleBuilder builder(problem());
  builder.send(0, in(0, 1));
  builder.send(2, in(0, 1));
  builder.send(0, in(0, 1));
  builder.recv(0, out(0, 1));
  builder.recv_reduce(0, out(0, 1), out(0, 1), MessageSide::left);
  const Schedule schedule = std::move(builder).finish();
  std::vector<std::uint32_t> numbers;
  for (const Step& step : schedule.steps) numbers.push_back(step.index);
  EXPECT_THAT(numbers, ElementsAre(0, 0, 1, 0, 1));
}

TEST(ScheduleBuilder, EmptyLocalStepsAndSelfCopiesVanish) {
  ScheduleBuilder builder(problem(CollectiveKind::all_reduce, true));
  builder.copy(in(0, 0), out(0, 0));
  builder.copy(in(0, 100), out(0, 100));
  builder.reduce(in(0, 0), in(0, 0), out(0, 0));
  builder.send(0, in(0, 0));
  builder.copy(in(0, 10), out(10, 10));
  const Schedule schedule = std::move(builder).finish();
  ASSERT_EQ(schedule.steps.size(), 2u);
  EXPECT_EQ(schedule.steps[0].kind, StepKind::send);
  EXPECT_EQ(schedule.steps[1].kind, StepKind::copy);
}

TEST(ScheduleBuilder, InPlaceInputAndOutputShareAddresses) {
  ScheduleBuilder builder(problem(CollectiveKind::all_reduce, true));
  builder.send(0, in(0, 10));
  builder.recv(0, out(5, 10));
  builder.recv(0, out(10, 5));
  const Schedule schedule = std::move(builder).finish();
  EXPECT_THAT(after(schedule, 1), ElementsAre(0));
  EXPECT_THAT(after(schedule, 2), ElementsAre(1));
}

TEST(ScheduleBuilder, InPlaceBlocksLieWhereTheRankIs) {
  ScheduleBuilder gather(problem(CollectiveKind::all_gather, true));
  gather.send(0, in(0, 100));
  gather.recv(0, out(0, 100));
  gather.recv(0, out(100, 1));  // the block of rank 1
  gather.copy(in(0, 100), out(100, 100));
  const Schedule gathered = std::move(gather).finish();
  ASSERT_EQ(gathered.steps.size(), 3u);
  EXPECT_THAT(after(gathered, 1), IsEmpty());
  EXPECT_THAT(after(gathered, 2), ElementsAre(0));

  ScheduleBuilder scatter(problem(CollectiveKind::reduce_scatter, true));
  scatter.send(0, in(0, 100));
  scatter.send(0, in(100, 100));
  scatter.recv(0, out(0, 100));
  const Schedule scattered = std::move(scatter).finish();
  EXPECT_THAT(after(scattered, 2), ElementsAre(1));

  const std::uint64_t counts[] = {3, 5, 7, 0};
  Problem uneven = problem(CollectiveKind::all_gather_v, true);
  uneven.output_counts = counts;
  ScheduleBuilder builder(uneven);
  builder.copy(in(0, 5), out(3, 5));
  EXPECT_THAT(std::move(builder).finish().steps, IsEmpty());
}

TEST(ScheduleBuilder, InPlaceAtTheRootOnlyWhereOnlyTheRootHasBoth) {
  Problem elsewhere = problem(CollectiveKind::gather, true);
  elsewhere.root = 0;
  ScheduleBuilder builder(elsewhere);
  builder.send(0, in(0, 100));
  builder.recv(0, out(100, 100));
  EXPECT_THAT(after(std::move(builder).finish(), 1), IsEmpty());
}

TEST(ScheduleBuilder, RedirectedInputIsScratchAndNoLongerShared) {
  ScheduleBuilder builder(problem(CollectiveKind::all_reduce, true));
  builder.scratch(3);
  const Slice scaled = builder.scratch(100);
  builder.scale(in(0, 100), scaled);
  builder.redirect_input(scaled);
  builder.send(0, in(10, 5));
  builder.recv(0, out(10, 5));
  const Schedule schedule = std::move(builder).finish();
  EXPECT_EQ(schedule.steps[1].left, (Slice{BufferId::scratch, scaled.offset + 10, 5}));
  EXPECT_THAT(after(schedule, 2), ElementsAre(0));  // the step does not wait for the send
}

TEST(ScheduleBuilder, ScratchSlicesAreApartAndOnCacheLines) {
  ScheduleBuilder builder(problem());
  const Slice a = builder.scratch(5);
  const Slice b = builder.scratch(20);
  EXPECT_GE(b.offset, a.offset + a.count);
  EXPECT_EQ(b.offset * 4 % 64, 0u);
  EXPECT_GE(std::move(builder).finish().scratch_count, b.offset + b.count);
}

TEST(ScheduleBuilder, LimitOrdersSends) {
  ScheduleBuilder builder(problem());
  builder.send(0, in(0, 1));
  builder.limit_in_flight(2);
  for (std::uint64_t i = 0; i < 3; ++i) builder.send(2, in(i, 1));
  for (std::uint64_t i = 0; i < 3; ++i) builder.recv(2, out(i, 1));
  const Schedule schedule = std::move(builder).finish();
  EXPECT_THAT(after(schedule, 2), IsEmpty());
  EXPECT_THAT(after(schedule, 3), ElementsAre(1));
  EXPECT_THAT(after(schedule, 6), IsEmpty());
}

TEST(ScheduleBuilder, FenceHoldsSendsBackUntilAllIsReceived) {
  ScheduleBuilder builder(problem());
  builder.send(0, {});
  builder.recv(2, {});
  builder.fence();
  builder.send(2, {});
  builder.recv(0, {});
  const Schedule schedule = std::move(builder).finish();
  EXPECT_THAT(after(schedule, 2), ElementsAre(1));
  EXPECT_THAT(after(schedule, 3), IsEmpty());
}

// Segment s + 1 arrives while segment s is being sent, as in a pipeline.
TEST(ScheduleBuilder, RingIsAPipeline) {
  Problem p = problem();
  p.count = 64;
  const Algorithm* ring = find_algorithm(CollectiveKind::all_reduce, "ring");
  ASSERT_NE(ring, nullptr);
  const Schedule schedule = build_schedule(*ring, p, {.segment_bytes = 16});  // 4 segments per block
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    const auto earlier = after(schedule, i);
    if (step.kind == StepKind::recv_reduce) {
      EXPECT_THAT(earlier, IsEmpty());
    }
    if (step.kind != StepKind::send || earlier.empty()) continue;
    ASSERT_EQ(earlier.size(), 1u) << schedule.to_string();
    EXPECT_EQ(schedule.steps[earlier[0]].out, step.left) << schedule.to_string();
  }
}

TEST(ScheduleBuilder, ManyStepsBuildInNearLinearTime) {
  // Quadratic work would take minutes here and exceed the test's time limit.
  constexpr std::uint64_t steps = 200'000;
  Problem p = problem();
  ScheduleBuilder builder(p);
  for (std::uint64_t i = 0; i < steps; ++i) builder.recv(0, out(i * 7919 % steps, 1));
  for (std::uint64_t i = 0; i < steps; ++i) builder.send(0, out(i, 1));
  builder.divide(out(0, steps), out(0, steps));
  const Schedule schedule = std::move(builder).finish();
  EXPECT_EQ(schedule.steps.back().dependencies, steps);
}

TEST(Schedule, ToStringNamesStepsAndDependencies) {
  ScheduleBuilder builder(problem());
  builder.send(3, in(0, 512));
  builder.recv_reduce(3, in(0, 512), out(0, 512), MessageSide::right);
  builder.copy(out(0, 2), out(600, 2));
  builder.recv_reduce(0, out(0, 2), out(0, 2), MessageSide::left);
  EXPECT_EQ(std::move(builder).finish().to_string(),
            "0 send to 3 #0 input[0,512)\n"
            "1 recv_reduce from 3 #0 output[0,512) <- input[0,512) op message\n"
            "2 copy output[600,602) <- output[0,2), after 1\n"
            "3 recv_reduce from 0 #0 output[0,2) <- message op output[0,2), after 2\n");
}

TEST(BuildSchedule, SmallAllReduceOfTwoRanksIsOneMessageEachWay) {
  Problem p = problem();
  p.rank = 0;
  p.size = 2;
  p.count = 1;
  p.element_size = 8;
  const Schedule schedule =
      build_schedule(*find_algorithm(CollectiveKind::all_reduce, "recursive_doubling"), p, {});
  EXPECT_EQ(schedule.to_string(),
            "0 send to 1 #0 input[0,1)\n"
            "1 recv_reduce from 1 #0 output[0,1) <- input[0,1) op message\n");
}

TEST(BuildSchedule, AlgorithmTableIsConsistent) {
  std::vector<std::uint8_t> ids;
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_NE(algorithm.id, 0);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), algorithm.id), 0) << int{algorithm.id};
    ids.push_back(algorithm.id);
    EXPECT_EQ(find_algorithm(algorithm.id), &algorithm);
    EXPECT_EQ(find_algorithm(algorithm.kind, algorithm.name), &algorithm);
  }
  EXPECT_EQ(find_algorithm(0), nullptr);
  EXPECT_EQ(find_algorithm(CollectiveKind::barrier, "ring"), nullptr);
}

}  // namespace
}  // namespace tutti
