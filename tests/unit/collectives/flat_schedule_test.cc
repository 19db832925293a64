#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/collectives/board_world.h"

namespace tutti::test {
namespace {

using Kind = CollectiveKind;

Schedule all_reduce_of(std::uint64_t count, const char* algorithm) {
  Problem problem;
  problem.kind = Kind::all_reduce;
  problem.size = 2;
  problem.count = count;
  problem.element_size = 4;
  problem.window_bytes = 64 * 1024;
  return build_schedule(*find_algorithm(Kind::all_reduce, algorithm), problem, {});
}

TEST(FlatSchedule, IsForWhatFitsIntoSlots) {
  constexpr std::uint64_t most = Board::payload_bytes / 64 * 64 / 4;
  EXPECT_TRUE(FlatSchedule(all_reduce_of(1, "shared_direct"), 4).usable());
  EXPECT_TRUE(FlatSchedule(all_reduce_of(most, "shared_direct"), 4).usable());
  EXPECT_FALSE(FlatSchedule(all_reduce_of(most + 1, "shared_direct"), 4).usable());
  EXPECT_FALSE(FlatSchedule(all_reduce_of(100'000, "shared_direct"), 4).usable());  // has a repetition
  EXPECT_FALSE(FlatSchedule(all_reduce_of(1, "recursive_doubling"), 4).usable());   // sends messages
}

TEST(FlatSchedule, HasTheStepsOfItsSchedule) {
  const Schedule schedule = all_reduce_of(3, "shared_direct");
  const FlatSchedule flat(schedule, 4);
  ASSERT_EQ(flat.steps().size(), schedule.steps.size());
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    EXPECT_EQ(flat.steps()[i].kind, step.kind);
    EXPECT_EQ(flat.steps()[i].bytes, 4 * step.out.count);
    if (step.kind != StepKind::reduce || step.right.buffer != BufferId::window) continue;
    EXPECT_EQ(flat.steps()[i].right.offset, static_cast<std::size_t>(step.right.owner) * Board::area_bytes);
  }
}

// Each operation runs three times. The second and third calls repeat the first. A rank that repeats its
// previous call may check later whether the other ranks made the same call, so the test covers that case,
// too.
TEST(FlatSchedule, DoesWhatItsScheduleDoes) {
  constexpr Kind kinds[] = {Kind::all_reduce,     Kind::reduce,     Kind::broadcast, Kind::all_gather,
                            Kind::reduce_scatter, Kind::all_to_all, Kind::gather,    Kind::scatter,
                            Kind::scan,           Kind::exscan,     Kind::barrier};
  for (const Kind kind : kinds) {
    for (const int size : {2, 3, 5}) {
      BoardWorld flat(size);
      BoardWorld stepwise(size);
      stepwise.flat = false;
      std::vector<std::pair<const BoardWorld::Operation*, const BoardWorld::Operation*>> pairs;
      for (int i = 0; i < 3 * size; ++i) {
        // A different rank runs last each time. All signals that this rank awaits have already
        // arrived, so it runs to its end.
        const int rank = (i + i / size) % size;
        const std::uint64_t count = kind == Kind::barrier ? 0 : 7;
        pairs.emplace_back(&flat.issue(rank, kind, count, 1), &stepwise.issue(rank, kind, count, 1));
        if (i % size == size - 1) {
          EXPECT_EQ(pairs.back().first->told, 1) << to_string(kind) << " " << size;
          flat.settle();
          stepwise.settle();
        }
      }
      for (const auto& [one, other] : pairs) {
        EXPECT_EQ(one->told, 1) << to_string(kind) << " " << size;
        EXPECT_EQ(one->out, other->out) << to_string(kind) << " " << size;
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
