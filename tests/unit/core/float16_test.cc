#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <tutti/float16.h>

#include "tests/unit/core/reference.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tutti {
namespace {

static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2);
static_assert(sizeof(float8_e4m3) == 1 && sizeof(float8_e5m2) == 1);
static_assert(std::is_trivially_copyable_v<float16> && std::is_trivially_default_constructible_v<float16>);
static_assert(float16(1.0f).bits() == 0x3c00 && float(float16::from_bits(0x3c00)) == 1.0f);
static_assert(bfloat16(1.0f).bits() == 0x3f80 && float8_e4m3(1.0f).bits() == 0x38 &&
              float8_e5m2(1.0f).bits() == 0x3c);

template <class T>
class NarrowFloatTest : public ::testing::Test {
 protected:
  static reference::Format format() { return reference::format_of(DataTypeOf<T>::value); }
  static unsigned codes() { return 1u << (8 * sizeof(T)); }
};
using Types = ::testing::Types<float16, bfloat16, float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(NarrowFloatTest, Types);

TYPED_TEST(NarrowFloatTest, EveryPatternWidensExactlyAndComesBack) {
  for (unsigned code = 0; code < this->codes(); ++code) {
    const auto number = TypeParam::from_bits(static_cast<typename TypeParam::Bits>(code));
    const auto expected = static_cast<float>(reference::decode(this->format(), code));
    const float value = number;
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << code;
      EXPECT_TRUE(std::isnan(float(TypeParam(value)))) << code;
      EXPECT_EQ(std::signbit(value), (code & this->format().sign_bit()) != 0) << code;
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(expected)) << code;
    ASSERT_EQ(TypeParam(value).bits(), code);
  }
}

// Checks the floats around every number that the format represents, and around the midpoint between every two
// neighbouring numbers.
TYPED_TEST(NarrowFloatTest, RoundsToNearestEven) {
  const auto check = [&](float value) {
    for (const float signed_value : {value, -value}) {
      ASSERT_EQ(TypeParam(signed_value).bits(), reference::encode(this->format(), signed_value))
          << signed_value;
    }
  };
  const float infinity = std::numeric_limits<float>::infinity();
  for (unsigned code = 0; code <= this->format().largest_code(); ++code) {
    const double here = reference::decode(this->format(), code);
    // The largest number has no successor, so the step is its distance from its predecessor. Rounding up
    // begins half a step above the largest number.
    const double step = code < this->format().largest_code()
                            ? reference::decode(this->format(), code + 1) - here
                            : here - reference::decode(this->format(), code - 1);
    for (const double point : {here, here + step / 2, here + step}) {
      if (point > std::numeric_limits<float>::max()) continue;
      const auto middle = static_cast<float>(point);
      check(middle);
      check(std::nextafter(middle, infinity));
      check(std::nextafter(middle, 0.0f));
    }
  }
  check(infinity);
  check(std::numeric_limits<float>::max());
  check(std::numeric_limits<float>::denorm_min());
}

TYPED_TEST(NarrowFloatTest, AgreesWithTheReferenceOnASweepOfAllFloats) {
  for (std::uint64_t pattern = 0; pattern < (std::uint64_t{1} << 32); pattern += 4093) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(pattern));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(float(TypeParam(value))));
    } else {
      ASSERT_EQ(TypeParam(value).bits(), reference::encode(this->format(), value)) << pattern;
    }
  }
}

TYPED_TEST(NarrowFloatTest, IsStorageForBuffers) {
  std::vector<TypeParam> numbers(3, TypeParam(2.0f));
  const Buffer buffer(numbers);
  EXPECT_EQ(buffer.type, DataTypeOf<TypeParam>::value);
  EXPECT_EQ(buffer.bytes(), 3 * sizeof(TypeParam));
}

TEST(Float8, E4M3HasNoInfinityAndDoesNotSaturate) {
  EXPECT_EQ(float(float8_e4m3(448.0f)), 448.0f);
  EXPECT_EQ(float(float8_e4m3(464.0f)), 448.0f);  // halfway: rounds to even
  EXPECT_TRUE(std::isnan(float(float8_e4m3(464.1f))));
  EXPECT_EQ(float8_e4m3(-std::numeric_limits<float>::infinity()).bits(), 0xff);
}

TEST(Float8, E5M2HasInfinity) {
  EXPECT_EQ(float(float8_e5m2(57344.0f)), 57344.0f);
  EXPECT_TRUE(std::isinf(float(float8_e5m2(61440.0f))));
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) std::uint16_t hardware_narrow(float value) {
  return static_cast<std::uint16_t>(
      _mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT)));
}
__attribute__((target("f16c"))) std::uint32_t hardware_widen(std::uint16_t bits) {
  return std::bit_cast<std::uint32_t>(_cvtsh_ss(bits));
}

// This also compares the signs and payloads of NaN.
TEST(Float16, EqualsTheHardwareConversions) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this processor has no float16 conversions";
  for (unsigned code = 0; code < 65536; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(float(float16::from_bits(bits))), hardware_widen(bits)) << code;
  }
  for (std::uint64_t pattern = 0; pattern < (std::uint64_t{1} << 32); pattern += 1021) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(pattern));
    ASSERT_EQ(float16(value).bits(), hardware_narrow(value)) << pattern;
  }
}
#endif

}  // namespace
}  // namespace tutti
