#include "collectives/schedule/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/topology.h"

namespace tutti {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

Problem problem(CollectiveKind kind, int size, std::uint64_t bytes) {
  Problem p;
  p.kind = kind;
  p.size = size;
  p.count = bytes / 4;
  p.element_size = 4;
  return p;
}

Selector selector(const std::string& overrides = "") { return Selector::create({}, overrides).take(); }

std::string_view chosen(CollectiveKind kind, int size, std::uint64_t bytes) {
  return selector().choose(problem(kind, size, bytes)).take().algorithm->name;
}

constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = 1024 * KiB;

TEST(Selector, AllReduce) {
  for (const int size : {2, 4, 8, 16, 64})
    EXPECT_EQ(chosen(CollectiveKind::all_reduce, size, 8), "recursive_doubling");
  for (const int size : {8, 16}) {
    EXPECT_EQ(chosen(CollectiveKind::all_reduce, size, 256 * KiB), "rabenseifner");
    EXPECT_EQ(chosen(CollectiveKind::all_reduce, size, 256 * MiB), "ring");
  }
  // Recursive algorithms on 7 ranks first fold three ranks into the other four. For this, they send
  // a whole vector there and back. The circulant graph needs no folding.
  EXPECT_EQ(chosen(CollectiveKind::all_reduce, 7, 256 * KiB), "circulant");
}

TEST(Selector, Broadcast) {
  for (const int size : {2, 4, 8, 16, 64}) EXPECT_EQ(chosen(CollectiveKind::broadcast, size, 8), "binomial");
  EXPECT_EQ(chosen(CollectiveKind::broadcast, 64, 512 * KiB), "scatter_all_gather");
  for (const int size : {8, 16}) EXPECT_EQ(chosen(CollectiveKind::broadcast, size, 256 * MiB), "chain");
}

TEST(Selector, Reduce) {
  for (const int size : {2, 4, 8, 16, 64}) EXPECT_EQ(chosen(CollectiveKind::reduce, size, 8), "binomial");
  EXPECT_EQ(chosen(CollectiveKind::reduce, 64, 512 * KiB), "reduce_scatter_gather");
  for (const int size : {8, 16}) EXPECT_EQ(chosen(CollectiveKind::reduce, size, 256 * MiB), "chain");
}

TEST(Selector, AllGather) {
  EXPECT_THAT(chosen(CollectiveKind::all_gather, 16, 8), AnyOf("bruck", "recursive_doubling"));
  EXPECT_EQ(chosen(CollectiveKind::all_gather, 7, 8), "bruck");
  EXPECT_THAT(chosen(CollectiveKind::all_gather, 16, 1 * MiB), AnyOf("neighbor_exchange", "ring"));
  EXPECT_EQ(chosen(CollectiveKind::all_gather, 15, 16 * MiB), "ring");
}

TEST(Selector, ReduceScatter) {
  EXPECT_EQ(chosen(CollectiveKind::reduce_scatter, 64, 8), "recursive_halving");
  EXPECT_EQ(chosen(CollectiveKind::reduce_scatter, 63, 8), "circulant");
  EXPECT_EQ(chosen(CollectiveKind::reduce_scatter, 16, 16 * MiB), "ring");
}

TEST(Selector, AllToAll) {
  EXPECT_EQ(chosen(CollectiveKind::all_to_all, 64, 8), "bruck");
  EXPECT_EQ(chosen(CollectiveKind::all_to_all, 64, 256 * KiB), "pairwise");
}

TEST(Selector, SeveralHosts) {
  CostModel model;
  model.near = {.alpha = 2e-6, .gap = 0.5e-6, .beta = 0.1e-9, .busy = 0.3e-6, .busy_byte = 0.05e-9};
  const Selector several = Selector::create(model, "").take();
  const auto chosen_for = [&](CollectiveKind kind, std::uint64_t bytes, const Topology& topology) {
    Problem p = problem(kind, topology.size(), bytes);
    p.topology = &topology;
    return several.choose(p).take().algorithm->name;
  };
  const Topology in_turn(std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
  EXPECT_EQ(chosen_for(CollectiveKind::all_reduce, 16 * MiB, Topology::regular(2, 4)), "two_level");
  EXPECT_EQ(chosen_for(CollectiveKind::all_reduce, 16 * MiB, in_turn), "two_level");
  EXPECT_EQ(chosen_for(CollectiveKind::barrier, 0, in_turn), "leaders");
  // The first rounds of recursive doubling already stay within hosts here, because each host has a
  // power of two of consecutive ranks.
  EXPECT_EQ(chosen_for(CollectiveKind::all_reduce, 8, Topology::regular(4, 4)), "recursive_doubling");
}

TEST(Selector, EveryKindHasAChoiceForEveryRankCount) {
  for (int k = 0; k <= static_cast<int>(CollectiveKind::barrier); ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    for (int size = 1; size <= 64; ++size) {
      for (const bool commutative : {true, false}) {
        Problem p = problem(kind, size, 1024);
        p.commutative = commutative;
        const std::vector<std::uint64_t> counts(static_cast<std::size_t>(size), 10);
        p.input_counts = p.output_counts = counts;
        const Result<Choice> choice = selector().choose(p);
        ASSERT_TRUE(choice.ok()) << choice.status().to_string();
        EXPECT_TRUE(commutative || !is_reduction(kind) || choice->algorithm->rank_order);
        EXPECT_GE(choice->seconds, 0);
      }
    }
  }
  EXPECT_EQ(selector().choose(problem(CollectiveKind::send, 2, 4)).status().code(), Code::invalid_argument);
}

TEST(Selector, AllRanksChooseAlike) {
  for (const Algorithm& algorithm : algorithms()) {
    Problem p = problem(algorithm.kind, 12, 100 * KiB);
    const std::vector<std::uint64_t> counts = {1, 2, 3, 0, 5, 6000, 7, 8, 9, 10, 11, 12};
    p.input_counts = p.output_counts = counts;
    p.root = 3;
    const Result<Choice> first = selector().choose(p);
    for (p.rank = 0; p.rank < p.size; ++p.rank) {
      const Result<Choice> other = selector().choose(p);
      ASSERT_TRUE(first.ok() && other.ok());
      EXPECT_EQ(other->algorithm, first->algorithm);
      EXPECT_EQ(other->tuning.radix, first->tuning.radix);
      EXPECT_EQ(other->tuning.segment_bytes, first->tuning.segment_bytes);
      EXPECT_EQ(other->seconds, first->seconds);
    }
  }
}

TEST(Selector, RankIsSortedAndComplete) {
  const auto choices = selector().rank(problem(CollectiveKind::all_reduce, 8, MiB));
  EXPECT_EQ(choices.size(), 4u);
  for (std::size_t i = 1; i < choices.size(); ++i) EXPECT_LE(choices[i - 1].seconds, choices[i].seconds);
}

TEST(Selector, OverridesApplyWhereTheyCan) {
  const Selector with = selector(" all_reduce:ring , all_gather:neighbor_exchange,");
  EXPECT_EQ(with.choose(problem(CollectiveKind::all_reduce, 8, 8)).take().algorithm->name, "ring");
  EXPECT_EQ(with.choose(problem(CollectiveKind::all_gather, 8, 8)).take().algorithm->name,
            "neighbor_exchange");
  EXPECT_NE(with.choose(problem(CollectiveKind::all_gather, 7, 8)).take().algorithm->name,
            "neighbor_exchange");
  Problem ordered = problem(CollectiveKind::all_reduce, 8, 8);
  ordered.commutative = false;
  EXPECT_NE(with.choose(ordered).take().algorithm->name, "ring");
}

TEST(Selector, UnknownOverridesAreNamed) {
  const auto error = [](const std::string& text) {
    const Result<Selector> result = Selector::create({}, text);
    EXPECT_EQ(result.status().code(), Code::invalid_argument);
    return result.status().message();
  };
  EXPECT_THAT(error("all_reduce"), HasSubstr("'all_reduce' is not of the form collective:algorithm"));
  EXPECT_THAT(error("all_deduce:ring"), HasSubstr("no collective is called 'all_deduce'"));
  EXPECT_THAT(error("all_reduce:rung"), HasSubstr("all_reduce has no algorithm 'rung'"));
  EXPECT_THAT(error("all_reduce:rung"), HasSubstr("rabenseifner"));
}

TEST(Selector, AlgorithmOfACallMustApply) {
  const Algorithm* ring = find_algorithm(CollectiveKind::all_reduce, "ring");
  EXPECT_EQ(selector().choose(problem(CollectiveKind::all_reduce, 8, 8), ring->id).take().algorithm, ring);
  const auto code = [](const Problem& p, std::uint8_t id) {
    return selector().choose(p, id).status().code();
  };
  EXPECT_EQ(code(problem(CollectiveKind::broadcast, 8, 8), ring->id), Code::invalid_argument);
  EXPECT_EQ(code(problem(CollectiveKind::broadcast, 8, 8), 255), Code::invalid_argument);
  Problem ordered = problem(CollectiveKind::all_reduce, 8, 8);
  ordered.commutative = false;
  EXPECT_EQ(code(ordered, ring->id), Code::invalid_argument);
}

TEST(Selector, DescribeNamesWhatMatters) {
  Choice choice;
  choice.algorithm = find_algorithm(CollectiveKind::all_reduce, "ring");
  choice.tuning.segment_bytes = 64 * KiB;
  choice.seconds = 123.44e-6;
  EXPECT_EQ(describe(choice), "ring, segments of 64 KiB: 123.4 us");
  choice.algorithm = find_algorithm(CollectiveKind::broadcast, "binomial");
  EXPECT_EQ(describe(choice), "binomial, radix 2: 123.4 us");
  choice.algorithm = find_algorithm(CollectiveKind::all_to_all, "pairwise");
  EXPECT_THAT(describe(choice), StartsWith("pairwise, window 8"));
}

}  // namespace
}  // namespace tutti
