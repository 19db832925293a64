#include <numeric>

#include <gtest/gtest.h>

#include "collectives/schedule/topology.h"
#include "tests/prove/schedule_checker.h"

// This file tests counts beyond 32 bits. If all offsets and counts of a schedule for billions of
// elements are divided by their common divisor, the result must be a correct schedule for few elements.
namespace tutti::test {
namespace {

constexpr std::uint64_t billion = std::uint64_t{1} << 30;
constexpr std::uint64_t bound = 3 * 4096;

void include(std::uint64_t& unit, const Slice& slice) {
  unit = std::gcd(unit, std::gcd(slice.offset, slice.count));
}

void divide(Slice& slice, std::uint64_t unit) {
  slice.offset /= unit;
  slice.count /= unit;
}

// Divides all offsets and counts by their greatest common divisor, and returns that divisor.
std::uint64_t shrink(std::vector<Schedule>& schedules, std::uint64_t count) {
  std::uint64_t unit = count;
  for (const Schedule& schedule : schedules) {
    unit = std::gcd(unit, schedule.scratch_count);
    for (const Step& step : schedule.steps) {
      for (const Slice& slice : {step.left, step.right, step.out}) include(unit, slice);
    }
  }
  for (Schedule& schedule : schedules) {
    schedule.scratch_count /= unit;
    for (Step& step : schedule.steps) {
      for (Slice* slice : {&step.left, &step.right, &step.out}) divide(*slice, unit);
    }
  }
  return unit;
}

TEST(LargeCounts, SchedulesAreTheSmallOnesScaled) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind == CollectiveKind::barrier) continue;
    for (const int size : {2, 4, 8}) {
      for (const std::uint64_t segment : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
        if (segment != 0 && (algorithm.knobs & segment_knob) == 0) continue;
        const std::uint64_t count = billion * 8;
        ScheduleCase large(algorithm.kind, size, count, size - 1, false);
        if (large.base.count == 0) continue;  // a _v kind; the next test checks two of these
        const Topology two_hosts = Topology::regular(2, size / 2);
        if (!algorithm.applies(large.base)) large.base.topology = &two_hosts;
        if (!algorithm.applies(large.base)) continue;
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < size; ++rank) {
          schedules.push_back(
              build_schedule(algorithm, large.at(rank), {.radix = 2, .segment_bytes = segment}));
          EXPECT_LE(schedules.back().steps.size(), bound) << algorithm.name;
        }
        const std::uint64_t unit = shrink(schedules, count);
        ASSERT_GE(unit, 1u << 20) << to_string(algorithm.kind) << ' ' << algorithm.name;
        const ScheduleCase small(algorithm.kind, size, count / unit, size - 1, false);
        EXPECT_EQ(check_schedules(schedules, small, false, 1), "")
            << to_string(algorithm.kind) << ' ' << algorithm.name << " p=" << size;
      }
    }
  }
}

bool has_blocks_of_their_own(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather_v || kind == CollectiveKind::reduce_scatter_v;
}

// All elements that the ranks send are received. Their number would be too small if a length were cut to 32
// bits.
TEST(LargeCounts, UnevenBlocksBeyond32Bits) {
  const std::vector<std::uint64_t> counts = {5 * billion, 0, 3, 7 * billion + 1};
  const std::uint64_t total = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  for (const Algorithm& algorithm : algorithms()) {
    const bool gathers = algorithm.kind == CollectiveKind::all_gather_v;
    if (algorithm.shared || (!gathers && algorithm.kind != CollectiveKind::reduce_scatter_v)) continue;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    for (int rank = 0; rank < 4; ++rank) {
      Problem problem;
      problem.kind = algorithm.kind;
      problem.rank = rank;
      problem.size = 4;
      problem.element_size = 2;
      (gathers ? problem.output_counts : problem.input_counts) = counts;
      const Schedule schedule = build_schedule(algorithm, problem, {.segment_bytes = 1 << 16});
      EXPECT_LE(schedule.steps.size(), bound);
      for (const Step& step : schedule.steps) {
        if (step.peer < 0) continue;
        (step.kind == StepKind::send ? sent : received) +=
            step.kind == StepKind::send ? step.left.count : step.out.count;
      }
    }
    EXPECT_EQ(sent, received) << algorithm.name;
    EXPECT_EQ(sent, 3 * total) << algorithm.name;
  }
}

TEST(LargeCounts, StepsStayBoundedForManyRanks) {
  for (const Algorithm& algorithm : algorithms()) {
    if ((algorithm.knobs & segment_knob) == 0) continue;
    Problem problem;
    problem.kind = algorithm.kind;
    problem.rank = 17;
    problem.size = 64;
    problem.count = std::uint64_t{1} << 40;
    problem.element_size = 8;
    problem.average = problem.premultiplied = true;
    const Topology hosts = Topology::regular(8, 8);
    if (!algorithm.applies(problem)) problem.topology = &hosts;
    const std::vector<std::uint64_t> counts(64, std::uint64_t{1} << 36);
    if (problem.kind == CollectiveKind::all_gather_v) problem.output_counts = counts;
    if (problem.kind == CollectiveKind::reduce_scatter_v) problem.input_counts = counts;
    if (!algorithm.applies(problem)) continue;
    EXPECT_LE(build_schedule(algorithm, problem, {.segment_bytes = 4096}).steps.size(), 3 * bound)
        << algorithm.name;
  }
}

// The schedule of an operation through windows (areas of shared memory) has a few rounds, which are repeated
// as often as needed. Ranks signal values of 64 bits (phases) to each other. A phase holds the operation's
// number in 40 bits, and a count of the operation's signals in the other 24 bits. That count must not
// overflow.
TEST(LargeCounts, SharedSchedulesRepeatThemselves) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const int size : {2, 8, 64}) {
      Problem problem;
      problem.kind = algorithm.kind;
      problem.size = size;
      problem.rank = size - 1;
      problem.count = 4 * billion;
      problem.element_size = 4;
      problem.window_bytes = 1 << 20;
      problem.registered = !algorithm.applies(problem);
      if (!algorithm.shared || has_blocks_of_their_own(algorithm.kind)) continue;
      const Schedule schedule = build_schedule(algorithm, problem, {});
      EXPECT_LE(schedule.steps.size(), 2 * bound * static_cast<std::size_t>(size) / 8 + bound)
          << algorithm.name;
      std::uint64_t last = 0;
      for (const Step& step : schedule.steps) {
        if (step.kind == StepKind::signal) last = std::max<std::uint64_t>(last, step.index);
      }
      EXPECT_LT(last + schedule.repeat.times * schedule.repeat.signals, 1u << 24)
          << to_string(algorithm.kind) << ' ' << algorithm.name << " p=" << size;
    }
  }
}

}  // namespace
}  // namespace tutti::test
