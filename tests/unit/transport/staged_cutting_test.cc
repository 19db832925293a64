// Tests how staged calls are cut into pieces (transport/staged/cutting.h).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "transport/staged/cutting.h"

namespace tutti::staged {
namespace {

constexpr int ranks = 3;
const std::vector<std::uint64_t> uneven = {0, 7, 20};

ConstBuffer input_of(std::uint64_t count) { return ConstBuffer(nullptr, count, DataType::float32); }
Buffer output_of(std::uint64_t count) { return Buffer(nullptr, count, DataType::float32); }

// Returns the calls of rank 2, which is the root.
std::vector<Call> calls() {
  using Kind = CollectiveKind;
  return {
      {.kind = Kind::all_reduce, .in = input_of(20), .out = output_of(20)},
      {.kind = Kind::broadcast, .in = input_of(20), .out = output_of(20), .root = 2},
      {.kind = Kind::exscan, .in = input_of(20), .out = output_of(20)},
      {.kind = Kind::all_gather, .in = input_of(20), .out = output_of(60)},
      {.kind = Kind::all_gather_v, .in = input_of(20), .out = output_of(27), .out_counts = uneven},
      {.kind = Kind::reduce_scatter_v, .in = input_of(27), .out = output_of(20), .in_counts = uneven},
      {.kind = Kind::scatter, .in = input_of(60), .out = output_of(20), .root = 2},
      {.kind = Kind::gather_v, .in = input_of(20), .out = output_of(27), .root = 2, .out_counts = uneven},
      {.kind = Kind::all_to_all_v,
       .in = input_of(27),
       .out = output_of(27),
       .in_counts = uneven,
       .out_counts = uneven},
      {.kind = Kind::reduce_scatter, .in = input_of(0), .out = output_of(0)},
      {.kind = Kind::barrier},
  };
}

// Checks that all pieces of a buffer are small enough, and that each byte is in exactly one piece.
template <class PartOf>
void check_parts(const Cutting& cutting, std::size_t bytes, std::size_t piece_bytes, PartOf part_of) {
  std::vector<int> uses(bytes);
  for (std::uint64_t piece = 0; piece < cutting.own_pieces(); ++piece) {
    const Part part = part_of(piece);
    std::size_t sum = 0;
    for (const Part::Range& range : part.ranges) {
      sum += range.bytes;
      for (std::size_t i = 0; i < range.bytes; ++i) ++uses.at(range.offset + i);
    }
    EXPECT_LE(sum, std::max<std::size_t>(piece_bytes, ranks * sizeof(float)));
    EXPECT_EQ(sum, part.count * sizeof(float));
    EXPECT_EQ(std::accumulate(part.counts.begin(), part.counts.end(), std::uint64_t{0}), part.count);
  }
  EXPECT_TRUE(std::ranges::all_of(uses, [](int count) { return count == 1; }));
}

TEST(StagedCutting, EveryElementIsInOnePiece) {
  for (const std::size_t piece_bytes : {1u, 8u, 24u, 64u, 1000u}) {
    for (const Call& call : calls()) {
      SCOPED_TRACE(std::string(to_string(call.kind)) + " in pieces of " + std::to_string(piece_bytes));
      const Cutting cutting(call, 2, ranks, piece_bytes);
      check_parts(cutting, call.in.bytes(), piece_bytes, [&](auto piece) { return cutting.input(piece); });
      check_parts(cutting, call.out.bytes(), piece_bytes, [&](auto piece) { return cutting.output(piece); });
    }
  }
}

// The ranks' own blocks differ in length. If all ranks know all counts, they must still arrive at the same
// number of pieces.
TEST(StagedCutting, AllRanksCountTheSamePieces) {
  for (int rank = 0; rank < ranks; ++rank) {
    const std::uint64_t own = uneven[static_cast<std::size_t>(rank)];
    const Cutting gathers({.kind = CollectiveKind::all_gather_v,
                           .in = input_of(own),
                           .out = output_of(27),
                           .out_counts = uneven},
                          rank, ranks, 24);
    EXPECT_TRUE(gathers.all_know_counts());
    EXPECT_EQ(gathers.own_pieces(), 10u);
    const Cutting scatters(
        {.kind = CollectiveKind::scatter, .in = input_of(60), .out = output_of(20), .root = 1}, rank, ranks,
        24);
    EXPECT_EQ(scatters.own_pieces(), 10u);
    const Cutting unknown({.kind = CollectiveKind::gather_v, .in = input_of(own)}, rank, ranks, 24);
    EXPECT_FALSE(unknown.all_know_counts());
  }
}

TEST(StagedCutting, OnlyOutputsThatChangeAreWritten) {
  const Call exscan{.kind = CollectiveKind::exscan, .in = input_of(2), .out = output_of(2)};
  EXPECT_FALSE(Cutting(exscan, 0, ranks, 64).writes());
  EXPECT_TRUE(Cutting(exscan, 1, ranks, 64).writes());
  const Call broadcast{.kind = CollectiveKind::broadcast, .in = input_of(2), .out = output_of(2), .root = 1};
  EXPECT_FALSE(Cutting(broadcast, 1, ranks, 64).writes());
  EXPECT_TRUE(Cutting(broadcast, 0, ranks, 64).writes());
}

}  // namespace
}  // namespace tutti::staged
