#include <gtest/gtest.h>

#include "collectives/schedule/registered.h"
#include "tests/unit/collectives/proof_cases.h"

// This file uses the symbolic checker to prove every algorithm over shared memory. Some windows are so small
// that a vector takes hundreds of rounds, some are just large enough for the vector, and some are larger.
namespace tutti::test {
namespace {

constexpr std::uint64_t line = 64;

// Returns the size of the smallest windows that an algorithm can use.
std::uint64_t smallest(int size) { return static_cast<std::uint64_t>(size) * 4 * line; }

Problem shape(const Algorithm& algorithm, int size, std::uint32_t element_size, std::uint64_t window_bytes) {
  Problem problem;
  problem.kind = algorithm.kind;
  problem.size = size;
  problem.element_size = element_size;
  problem.window_bytes = window_bytes;
  return problem;
}

// Returns the number of elements in one round. One repetition in the schedule of a long vector has
// 64 rounds, so the result is the repetition's stride divided by 64. For a schedule without a
// repetition, the result does not matter.
std::uint64_t round_of(const Algorithm& algorithm, Problem problem) {
  problem.count = 1 << 20;
  const std::vector<std::uint64_t> none(static_cast<std::size_t>(problem.size));
  if (algorithm.kind == CollectiveKind::all_gather_v) problem.output_counts = none;
  if (algorithm.kind == CollectiveKind::reduce_scatter_v) problem.input_counts = none;
  const std::uint64_t stride = build_schedule(algorithm, problem, {}).repeat.stride;
  return stride == 0 ? line / problem.element_size : stride / 64;
}

void prove(const Algorithm& algorithm, const Problem& shape, const std::vector<std::uint64_t>& counts,
           std::uint32_t& seed) {
  const auto variants = variants_for(algorithm);
  const auto roots = roots_for(algorithm.kind, shape.size);
  for (const std::uint64_t count : counts) {
    for (const bool in_place : {false, true}) {
      // For few ranks, the test proves every count with all combinations of variants and roots. For
      // many ranks, it proves each count with only one combination.
      const std::size_t combinations = variants.size() * roots.size();
      for (std::size_t i = 0; i < (shape.size <= 4 ? combinations : 1); ++i) {
        const std::size_t pick = shape.size <= 4 ? i : seed % combinations;
        ScheduleCase test(algorithm.kind, shape.size, count, roots[pick % roots.size()], in_place);
        test.base.element_size = shape.element_size;
        test.base.window_bytes = shape.window_bytes;
        test.base.registered = shape.registered;
        variants[pick / roots.size()].apply(test.base);
        if (!algorithm.applies(test.base)) continue;
        ASSERT_EQ(check_algorithm(algorithm, test, {}, ++seed), "");
      }
    }
  }
}

void prove_windows(const Algorithm& algorithm, int size, std::uint32_t& seed) {
  // Each element fills a cache line of 64 bytes, so that a round has few elements.
  const Problem lines = shape(algorithm, size, line, smallest(size));
  const std::uint64_t r = round_of(algorithm, lines);
  prove(algorithm, lines, {0, 1, r, r + 1, 4 * r, 5 * r - 1}, seed);
  if (size <= 8) {
    prove(algorithm, lines, {127 * r, 128 * r, 128 * r + 1, 131 * r - 1, 193 * r + r / 2}, seed);
  }
  for (const std::uint64_t bytes : {smallest(size), 5 * smallest(size) + 3 * line, std::uint64_t{1} << 20}) {
    const Problem words = shape(algorithm, size, 4, bytes);
    const std::uint64_t round = bytes < 16 * 1024 && size <= 17 ? round_of(algorithm, words) : 1;
    prove(algorithm, words, {1, 17, round - 1, round, 3 * round + 5}, seed);
  }
}

void prove_all(CollectiveKind kind) {
  std::uint32_t seed = 0;
  int proved = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind != kind || !algorithm.shared) continue;
    if (!algorithm.applies(shape(algorithm, 2, 4, 1 << 20))) continue;  // see ProveRegistered
    for (const int size : {2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 17, 24, 32, 33, 64}) {
      prove_windows(algorithm, size, seed);
      if (testing::Test::HasFatalFailure()) return;
    }
    ++proved;
  }
  EXPECT_GT(proved, 0);
}

TEST(ProveSharedReductions, AllReduce) { prove_all(CollectiveKind::all_reduce); }
TEST(ProveSharedReductions, Reduce) { prove_all(CollectiveKind::reduce); }
TEST(ProveSharedReductions, ReduceScatter) { prove_all(CollectiveKind::reduce_scatter); }
TEST(ProveSharedReductions, ReduceScatterV) { prove_all(CollectiveKind::reduce_scatter_v); }
TEST(ProveSharedReductions, Scan) { prove_all(CollectiveKind::scan); }
TEST(ProveSharedReductions, Exscan) { prove_all(CollectiveKind::exscan); }
TEST(ProveSharedMoves, Broadcast) { prove_all(CollectiveKind::broadcast); }
TEST(ProveSharedMoves, AllGather) { prove_all(CollectiveKind::all_gather); }
TEST(ProveSharedMoves, AllGatherV) { prove_all(CollectiveKind::all_gather_v); }
TEST(ProveSharedMoves, AllToAll) { prove_all(CollectiveKind::all_to_all); }
TEST(ProveSharedMoves, Gather) { prove_all(CollectiveKind::gather); }
TEST(ProveSharedMoves, Scatter) { prove_all(CollectiveKind::scatter); }
TEST(ProveSharedMoves, Barrier) { prove_all(CollectiveKind::barrier); }

// These algorithms work on registered memory, one piece of the vector at a time. They use windows only as
// scratch space. A small window makes the pieces smaller.
TEST(ProveRegistered, EveryKind) {
  std::uint32_t seed = 0;
  int proved = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (const int size : {2, 3, 4, 5, 7, 8, 13, 16, 33}) {
      // The elements are large, so that a piece has only a few of them. A few pieces make 128 KiB,
      // the smallest size for which these algorithms apply.
      Problem problem = shape(algorithm, size, 8 * 1024, 0);
      problem.registered = true;
      const auto p = static_cast<std::uint64_t>(size);
      for (const std::uint64_t window_bytes : {8u << 10, 24u << 10, 1u << 20}) {
        problem.window_bytes = window_bytes;
        problem.count = 1 << 20;
        if (!algorithm.shared || !algorithm.applies(problem)) continue;
        prove(algorithm, problem, {16, 17, 4 * p + 16, 12 * p + 17}, seed);
        ++proved;
      }
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(proved, 7 * 9 * 3);
}

}  // namespace
}  // namespace tutti::test
