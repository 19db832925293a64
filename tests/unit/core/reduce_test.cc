#include "core/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tutti/float16.h>

#include "core/reduce_tables.h"
#include "tests/unit/core/reference.h"

namespace tutti {
namespace {

using Kind = ReduceOp::Kind;
using Bytes = std::vector<unsigned char>;

constexpr std::array<Kind, 8> built_in = {Kind::sum, Kind::product, Kind::min,    Kind::max,
                                          Kind::avg, Kind::bit_and, Kind::bit_or, Kind::bit_xor};
// These counts are below, at and above the lengths of SIMD vectors.
constexpr std::array<std::size_t, 16> counts = {0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 65, 127, 1000};

// Returns bit patterns that are special in some format, mixed with random bit patterns.
Bytes sample(DataType type, std::size_t count, std::mt19937_64& random) {
  static const std::vector<float> floats = {0.0f,
                                            -0.0f,
                                            1.0f,
                                            -1.0f,
                                            std::numeric_limits<float>::infinity(),
                                            -std::numeric_limits<float>::infinity(),
                                            std::numeric_limits<float>::quiet_NaN(),
                                            -std::numeric_limits<float>::quiet_NaN(),
                                            std::numeric_limits<float>::signaling_NaN(),
                                            std::numeric_limits<float>::denorm_min(),
                                            std::numeric_limits<float>::min(),
                                            std::numeric_limits<float>::max(),
                                            1.5e-5f,
                                            65504.0f,
                                            448.0f,
                                            3.14159f};
  const std::size_t size = size_of(type);
  Bytes bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = random();
    const float chosen = floats[random() % floats.size()];
    const auto exact = static_cast<double>(chosen);
    if (random() % 2 == 0 && type == DataType::float32) std::memcpy(&bits, &chosen, sizeof(chosen));
    if (random() % 2 == 0 && type == DataType::float64) std::memcpy(&bits, &exact, sizeof(exact));
    if (random() % 2 == 0 && is_floating(type) && size < 4) {
      bits = reference::encode(reference::format_of(type), exact);
    }
    if (!is_floating(type) && random() % 4 == 0) {
      const std::array<std::uint64_t, 4> extremes = {0, ~std::uint64_t{0}, std::uint64_t{1} << (8 * size - 1),
                                                     (std::uint64_t{1} << (8 * size - 1)) - 1};
      bits = extremes[random() % extremes.size()];
    }
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

Bytes expected_result(DataType type, Kind op, const Bytes& left, const Bytes& right) {
  Bytes out(left.size());
  for (std::size_t at = 0; at < left.size(); at += size_of(type)) {
    reference::combine_element(type, op, &left[at], &right[at], &out[at]);
  }
  return out;
}

// `Placed` is memory whose first byte is `offset` past a 64-byte boundary, with guard bytes on both sides.
class Placed {
 public:
  Placed(const Bytes& content, std::size_t offset)
      : memory_(content.size() + 192, guard), start_(64), size_(content.size()) {
    while ((reinterpret_cast<std::uintptr_t>(&memory_[start_]) - offset) % 64 != 0) ++start_;
    std::copy(content.begin(), content.end(), memory_.begin() + static_cast<std::ptrdiff_t>(start_));
  }
  unsigned char* data() { return &memory_[start_]; }
  Bytes content() const {
    const auto first = memory_.begin() + static_cast<std::ptrdiff_t>(start_);
    return Bytes(first, first + static_cast<std::ptrdiff_t>(size_));
  }
  bool guards_intact() const {
    const auto is_guard = [](unsigned char byte) { return byte == guard; };
    const auto first = memory_.begin() + static_cast<std::ptrdiff_t>(start_);
    return std::all_of(memory_.begin(), first, is_guard) &&
           std::all_of(first + static_cast<std::ptrdiff_t>(size_), memory_.end(), is_guard);
  }

 private:
  static constexpr unsigned char guard = 0xa5;
  Bytes memory_;
  std::size_t start_;
  std::size_t size_;
};

class KernelTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  ReduceKernel kernel(DataType type, Kind op) const {
    return GetParam()->combine[static_cast<int>(type)][static_cast<int>(op)];
  }

  template <class Check>
  void for_all_kernels(Check check) const {
    for (int t = 0; t < data_type_count; ++t) {
      const auto type = static_cast<DataType>(t);
      for (const Kind op : built_in) {
        if (kernel(type, op) == nullptr) continue;
        SCOPED_TRACE(std::string(to_string(type)) + " " + std::string(to_string(op)));
        check(type, op);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Isa, KernelTest,
                         ::testing::ValuesIn(runnable_kernels().begin(), runnable_kernels().end()),
                         [](const auto& table) { return std::string(table.param->isa); });

TEST_P(KernelTest, ExistsExactlyWhereTheOperationIsDefined) {
  for (int t = 0; t < data_type_count; ++t) {
    const auto type = static_cast<DataType>(t);
    for (const Kind op : built_in) {
      const auto parsed = parse_reduce_op(to_string(op));
      ASSERT_TRUE(parsed);
      EXPECT_EQ(kernel(type, op) != nullptr, parsed->supports(type))
          << to_string(type) << " " << to_string(op);
    }
    EXPECT_EQ(kernel(type, Kind::premultiplied_sum) != nullptr, type != DataType::boolean);
    EXPECT_EQ(kernel(type, Kind::user), nullptr);
  }
}

TEST_P(KernelTest, EqualsThePlainLoopBitByBit) {
  std::mt19937_64 random(1);
  for_all_kernels([&](DataType type, Kind op) {
    for (const std::size_t count : counts) {
      for (const std::size_t offset : {0, 1, 3, 8}) {
        const Bytes left = sample(type, count, random);
        const Bytes right = sample(type, count, random);
        const Bytes expected = expected_result(type, op, left, right);
        Placed a(left, offset), b(right, (offset * 5) % 64), out(Bytes(left.size()), (offset * 3) % 64);
        kernel(type, op)(a.data(), b.data(), out.data(), count);
        ASSERT_EQ(out.content(), expected) << "count " << count << ", offset " << offset;
        ASSERT_TRUE(out.guards_intact());
        ASSERT_EQ(a.content(), left);
        ASSERT_EQ(b.content(), right);
      }
    }
  });
}

TEST_P(KernelTest, WorksInPlaceOnEitherSide) {
  std::mt19937_64 random(2);
  for_all_kernels([&](DataType type, Kind op) {
    for (const std::size_t count : counts) {
      const Bytes left = sample(type, count, random);
      const Bytes right = sample(type, count, random);
      const Bytes expected = expected_result(type, op, left, right);
      Placed a(left, 4), b(right, 0);
      kernel(type, op)(a.data(), b.data(), a.data(), count);
      ASSERT_EQ(a.content(), expected) << count;
      Placed c(left, 0), d(right, 2);
      kernel(type, op)(c.data(), d.data(), d.data(), count);
      ASSERT_EQ(d.content(), expected) << count;
      ASSERT_TRUE(a.guards_intact() && d.guards_intact());
      const Bytes with_itself = expected_result(type, op, left, left);
      Placed e(left, 1);
      kernel(type, op)(e.data(), e.data(), e.data(), count);
      ASSERT_EQ(e.content(), with_itself) << count;
    }
  });
}

// Tests all pairs of 8-bit patterns, for every 8-bit type and operation.
TEST_P(KernelTest, AllPairsOfBytes) {
  Bytes left(65536), right(65536);
  for (std::size_t i = 0; i < left.size(); ++i) {
    left[i] = static_cast<unsigned char>(i >> 8);
    right[i] = static_cast<unsigned char>(i);
  }
  for_all_kernels([&](DataType type, Kind op) {
    if (size_of(type) != 1) return;
    Bytes out(left.size());
    kernel(type, op)(left.data(), right.data(), out.data(), out.size());
    ASSERT_EQ(out, expected_result(type, op, left, right));
  });
}

// Tests every 16-bit pattern against ordinary, huge, tiny, infinite and undefined numbers.
TEST_P(KernelTest, AllPatternsOfSixteenBitFloats) {
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    Bytes left(2 * 65536);
    for (unsigned i = 0; i < 65536; ++i) reference::store(&left[2 * i], static_cast<std::uint16_t>(i));
    for (const double other :
         {0.0, -0.0, 1.0, -3.0, 0.1, 6e-8, 65504.0, 3e38, double(INFINITY), double(NAN)}) {
      Bytes right(left.size());
      const auto code = static_cast<std::uint16_t>(reference::encode(reference::format_of(type), other));
      for (unsigned i = 0; i < 65536; ++i) reference::store(&right[2 * i], code);
      for (const Kind op : {Kind::sum, Kind::product, Kind::min, Kind::max}) {
        Bytes out(left.size());
        kernel(type, op)(left.data(), right.data(), out.data(), 65536);
        ASSERT_EQ(out, expected_result(type, op, left, right))
            << to_string(type) << " " << to_string(op) << " " << other;
      }
    }
  }
}

template <class T>
T only(const void* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

TEST_P(KernelTest, ScalesAndDividesAsThePlainLoopDoes) {
  std::mt19937_64 random(3);
  const auto canonical = [](auto x) {
    return std::isnan(x) ? std::numeric_limits<decltype(x)>::quiet_NaN() : x;
  };
  for (int t = 0; t < data_type_count; ++t) {
    const auto type = static_cast<DataType>(t);
    if (!is_floating(type)) continue;
    const std::size_t size = size_of(type);
    for (const std::size_t count : counts) {
      for (const double factor : {0.5, 1.0 / 3, -7.0}) {
        const std::size_t divisor = 3;
        const Bytes in = sample(type, count, random);
        Bytes scaled(in.size()), divided(in.size());
        for (std::size_t at = 0; at < in.size(); at += size) {
          if (type == DataType::float64) {
            const auto x = only<double>(&in[at]);
            reference::store(&scaled[at], canonical(x * factor));
            reference::store(&divided[at], canonical(x / 3.0));
          } else if (type == DataType::float32) {
            const auto x = only<float>(&in[at]);
            reference::store(&scaled[at], canonical(x * static_cast<float>(factor)));
            reference::store(&divided[at], canonical(x / 3.0f));
          } else {
            const auto format = reference::format_of(type);
            const unsigned code = size == 2 ? only<std::uint16_t>(&in[at]) : in[at];
            const auto x = static_cast<float>(reference::decode(format, code));
            const auto up = reference::encode(format, static_cast<double>(x * static_cast<float>(factor)));
            const auto down = reference::encode(format, static_cast<double>(x / 3.0f));
            std::memcpy(&scaled[at], &up, size);
            std::memcpy(&divided[at], &down, size);
          }
        }
        Placed a(in, 1), b(in, 3), out(Bytes(in.size()), 2);
        GetParam()->scale[t](a.data(), out.data(), count, factor);
        ASSERT_EQ(out.content(), scaled) << to_string(type) << " " << factor << " " << count;
        GetParam()->scale[t](a.data(), a.data(), count, factor);
        ASSERT_EQ(a.content(), scaled);
        GetParam()->divide[t](b.data(), b.data(), count, divisor);
        ASSERT_EQ(b.content(), divided) << to_string(type) << " " << count;
        ASSERT_TRUE(a.guards_intact() && b.guards_intact() && out.guards_intact());
      }
    }
  }
}

template <class T>
std::vector<T> scaled(const KernelTable& table, std::vector<T> values, double factor) {
  table.scale[static_cast<int>(DataTypeOf<T>::value)](values.data(), values.data(), values.size(), factor);
  return values;
}

template <class T>
std::vector<T> divided(const KernelTable& table, std::vector<T> values, std::size_t divisor) {
  table.divide[static_cast<int>(DataTypeOf<T>::value)](values.data(), values.data(), values.size(), divisor);
  return values;
}

TEST_P(KernelTest, IntegersAreTruncatedTowardsZeroAndNeverOverflow) {
  const KernelTable& table = *GetParam();
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(divided<std::int32_t>(table, {7, -7, 8, -1, INT32_MIN}, 4),
            (std::vector<std::int32_t>{1, -1, 2, 0, INT32_MIN / 4}));
  EXPECT_EQ(divided<std::int8_t>(table, {127, -128, -1}, 200), (std::vector<std::int8_t>{0, 0, 0}));
  EXPECT_EQ(divided<std::uint64_t>(table, {~std::uint64_t{0}}, 2), (std::vector<std::uint64_t>{INT64_MAX}));
  EXPECT_EQ(divided<std::int64_t>(table, {least, most}, 3), (std::vector<std::int64_t>{least / 3, most / 3}));
  EXPECT_EQ(scaled<std::int32_t>(table, {3, -3, 100}, 0.5), (std::vector<std::int32_t>{1, -1, 50}));
  EXPECT_EQ(scaled<std::int8_t>(table, {100, -100, 1}, 2.0), (std::vector<std::int8_t>{127, -128, 2}));
  EXPECT_EQ(scaled<std::uint8_t>(table, {100, 1}, -1.0), (std::vector<std::uint8_t>{0, 0}));
  EXPECT_EQ(scaled<std::int64_t>(table, {most, least, 5}, 2.0), (std::vector<std::int64_t>{most, least, 10}));
  EXPECT_EQ(scaled<std::uint64_t>(table, {~std::uint64_t{0}, 5}, 1.0),
            (std::vector<std::uint64_t>{~std::uint64_t{0}, 5}));
  EXPECT_EQ(scaled<std::uint32_t>(table, {1, 2}, NAN), (std::vector<std::uint32_t>{0, 0}));
}

TEST(Reduce, DispatchesToTheBestRunnableSet) {
  const auto tables = runnable_kernels();
  ASSERT_FALSE(tables.empty());
  EXPECT_STREQ(reduce_isa(), tables.front()->isa);
  EXPECT_EQ(reduce_kernel(DataType::float32, Kind::sum),
            tables.front()->combine[static_cast<int>(DataType::float32)][0]);
  for (const KernelTable* table : tables) RecordProperty(table->isa, "checked");
}

TEST(Reduce, ReducerCallsTheKernelOrTheUsersFunction) {
  const std::vector<std::int32_t> left = {1, 2, 3}, right = {10, 20, 30};
  std::vector<std::int32_t> out(3);
  Reducer(DataType::int32, ReduceOp::sum)(left.data(), right.data(), out.data(), 3);
  EXPECT_EQ(out, (std::vector<std::int32_t>{11, 22, 33}));

  int calls = 0;
  const auto subtract = [](const void* a, const void* b, void* to, std::size_t count, DataType type,
                           void* state) {
    ++*static_cast<int*>(state);
    EXPECT_EQ(type, DataType::int32);
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<std::int32_t*>(to)[i] =
          static_cast<const std::int32_t*>(a)[i] - static_cast<const std::int32_t*>(b)[i];
    }
  };
  const ReduceOp op = ReduceOp::user("subtract", subtract, false, &calls);
  Reducer(DataType::int32, op)(left.data(), right.data(), out.data(), 3);
  EXPECT_EQ(out, (std::vector<std::int32_t>{-9, -18, -27}));
  EXPECT_EQ(calls, 1);
}

TEST(Reduce, ScaleAndDivideByType) {
  std::vector<float> numbers = {3.0f, -9.0f};
  scale(numbers.data(), numbers.data(), 2, DataType::float32, 2.0);
  EXPECT_EQ(numbers, (std::vector<float>{6.0f, -18.0f}));
  divide(numbers.data(), numbers.data(), 2, DataType::float32, 4);
  EXPECT_EQ(numbers, (std::vector<float>{1.5f, -4.5f}));
}

}  // namespace
}  // namespace tutti
