#include "tools/bench/pattern.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/reduce.h"

namespace tutti::tools {
namespace {

constexpr DataType types[] = {
    DataType::int8,    DataType::uint8,       DataType::int32,      DataType::uint32,  DataType::int64,
    DataType::uint64,  DataType::float16,     DataType::bfloat16,   DataType::float32, DataType::float64,
    DataType::boolean, DataType::float8_e4m3, DataType::float8_e5m2};
const ReduceOp ops[] = {ReduceOp::sum, ReduceOp::product, ReduceOp::min,    ReduceOp::max,
                        ReduceOp::avg, ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor};
constexpr std::uint64_t count = 500;

using Bytes = std::vector<std::byte>;

// Combines the inputs of the ranks, in the given order. To do so, it repeatedly combines two
// random neighbours, until one result is left.
Bytes combine(const Pattern& pattern, const ReduceOp& op, std::vector<int> order, std::mt19937& random) {
  std::vector<Bytes> parts;
  for (const int rank : order) {
    parts.emplace_back(count * size_of(pattern.type()));
    pattern.fill(rank, 7, parts.back());
  }
  const Reducer reducer(pattern.type(), op);
  while (parts.size() > 1) {
    const std::size_t at = random() % (parts.size() - 1);
    reducer(parts[at].data(), parts[at + 1].data(), parts[at].data(), count);
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  if (op == ReduceOp::avg) divide(parts[0].data(), parts[0].data(), count, pattern.type(), order.size());
  return parts[0];
}

TEST(BenchPattern, EveryOrderGivesTheSameBits) {
  std::mt19937 random(1);
  for (const DataType type : types) {
    for (const ReduceOp& op : ops) {
      if (!op.supports(type)) continue;
      for (const int ranks : {1, 2, 3, 8, 64, 300}) {
        const Pattern pattern(type, op, ranks);
        Bytes expected(count * size_of(type));
        pattern.fill_reduced(0, ranks - 1, 7, expected);
        std::vector<int> order(static_cast<std::size_t>(ranks));
        std::iota(order.begin(), order.end(), 0);
        for (int round = 0; round < 3; ++round) {
          std::shuffle(order.begin(), order.end(), random);
          EXPECT_EQ(combine(pattern, op, order, random), expected)
              << to_string(type) << " " << op.name() << " on " << ranks;
        }
      }
    }
  }
}

TEST(BenchPattern, RanksAndPlacesDiffer) {
  for (const DataType type : types) {
    const Pattern pattern(type, ReduceOp::max, 4);
    Bytes one(count * size_of(type));
    Bytes two = one;
    Bytes later = one;
    pattern.fill(0, 0, one);
    pattern.fill(1, 0, two);
    pattern.fill(0, 64, later);
    EXPECT_NE(one, two) << to_string(type);
    EXPECT_NE(one, later) << to_string(type);
  }
}

TEST(BenchPattern, EveryRankContributes) {
  for (const DataType type : types) {
    for (const ReduceOp& op : {ReduceOp::sum, ReduceOp::product}) {
      const Pattern pattern(type, op, 8);
      Bytes all(count * size_of(type));
      Bytes without_last = all;
      pattern.fill_reduced(0, 7, 0, all);
      pattern.fill_reduced(0, 6, 0, without_last);
      EXPECT_NE(all, without_last) << to_string(type) << " " << op.name();
    }
  }
}

TEST(BenchChecker, CountsWrongElements) {
  for (const DataType type : types) {
    const Pattern pattern(type, ReduceOp::sum, 3);
    Bytes data(10000 * size_of(type));
    pattern.fill_reduced(0, 2, 5, data);
    Checker right(pattern);
    right.expect_reduced(data.data(), 10000, 0, 2, 5);
    EXPECT_EQ(right.wrong(), 0u) << to_string(type);
    for (const std::size_t index : {0, 4095, 4096, 9999}) data[index * size_of(type)] ^= std::byte{1};
    Checker wrong(pattern);
    wrong.expect_reduced(data.data(), 10000, 0, 2, 5);
    EXPECT_EQ(wrong.wrong(), 4u) << to_string(type);
  }
}

TEST(BenchChecker, SeesInputsInTheWrongPlace) {
  const Pattern pattern(DataType::float32, ReduceOp::sum, 4);
  Bytes data(1000 * 4);
  pattern.fill(2, 100, data);
  Checker right(pattern);
  right.expect_input(data.data(), 1000, 2, 100);
  EXPECT_EQ(right.wrong(), 0u);
  Checker shifted(pattern);
  shifted.expect_input(data.data(), 1000, 2, 101);
  EXPECT_GT(shifted.wrong(), 900u);
}

}  // namespace
}  // namespace tutti::tools
