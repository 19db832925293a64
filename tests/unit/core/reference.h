#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <tutti/reduce_op.h>
#include <tutti/types.h>

// These functions compute the right results of reduce kernels. They are as simple as possible, and
// share no code with the kernels.
namespace tutti::reference {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool infinity;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  unsigned largest_code() const {  // the largest code (bit pattern) of a finite number
    const unsigned all = (1u << (exponent_bits + mantissa_bits)) - 1;
    return infinity ? all - (1u << mantissa_bits) : all - 1;
  }
  unsigned nan_code() const {
    return infinity ? largest_code() + 1 + (1u << (mantissa_bits - 1)) : largest_code() + 1;
  }
  unsigned sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
};

inline Format format_of(DataType type) {
  switch (type) {
    case DataType::float16:
      return {5, 10, true};
    case DataType::bfloat16:
      return {8, 7, true};
    case DataType::float8_e4m3:
      return {4, 3, false};
    default:
      return {5, 2, true};
  }
}

inline double decode(Format format, unsigned code) {
  const unsigned size = code & (format.sign_bit() - 1);
  const double sign = (code & format.sign_bit()) != 0 ? -1.0 : 1.0;
  if (size > format.largest_code()) {
    const bool infinite = format.infinity && size == format.largest_code() + 1;
    return sign *
           (infinite ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN());
  }
  const int exponent = static_cast<int>(size >> format.mantissa_bits);
  const auto mantissa = static_cast<double>(size & ((1u << format.mantissa_bits) - 1));
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - format.bias() - format.mantissa_bits);
  return sign * std::ldexp(1.0 + std::ldexp(mantissa, -format.mantissa_bits), exponent - format.bias());
}

// Returns the code of `value`. Every NaN becomes the positive quiet NaN.
inline unsigned encode(Format format, double value) {
  if (std::isnan(value)) return format.nan_code();
  const unsigned sign = std::signbit(value) ? format.sign_bit() : 0;
  const unsigned too_large = format.largest_code() + 1;
  const double size = std::fabs(value);
  if (size == 0) return sign;
  if (std::isinf(size)) return sign | too_large;
  int exponent = 0;
  std::frexp(size, &exponent);
  const int smallest = 1 - format.bias();
  const int unit = std::max(exponent - 1, smallest) - format.mantissa_bits;  // exponent of the last place
  const double rounded = std::nearbyint(std::ldexp(size, -unit));            // ties to even
  // Consecutive numbers have consecutive codes, even across powers of two.
  const int field = unit + format.mantissa_bits - smallest;
  const double code = rounded + std::ldexp(static_cast<double>(field), format.mantissa_bits);
  return sign | (code > format.largest_code() ? too_large : static_cast<unsigned>(code));
}

template <class T>
T load(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void store(unsigned char* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

template <class T>
T float_result(ReduceOp::Kind op, T a, T b) {
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  if (std::isnan(a) || std::isnan(b)) return nan;
  T result{};
  switch (op) {
    case ReduceOp::Kind::product:
      result = a * b;
      break;
    case ReduceOp::Kind::min:
      result = a < b ? a : b;
      break;
    case ReduceOp::Kind::max:
      result = a > b ? a : b;
      break;
    default:
      result = a + b;
  }
  return std::isnan(result) ? nan : result;
}

template <class T>
T integer_result(ReduceOp::Kind op, T a, T b) {
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  switch (op) {
    case ReduceOp::Kind::product:
      return static_cast<T>(x * y);
    case ReduceOp::Kind::min:
      return b < a ? b : a;
    case ReduceOp::Kind::max:
      return b > a ? b : a;
    case ReduceOp::Kind::bit_and:
      return static_cast<T>(x & y);
    case ReduceOp::Kind::bit_or:
      return static_cast<T>(x | y);
    case ReduceOp::Kind::bit_xor:
      return static_cast<T>(x ^ y);
    default:
      return static_cast<T>(x + y);
  }
}

inline unsigned char boolean_result(ReduceOp::Kind op, bool a, bool b) {
  switch (op) {
    case ReduceOp::Kind::product:
    case ReduceOp::Kind::min:
    case ReduceOp::Kind::bit_and:
      return a && b;
    case ReduceOp::Kind::bit_xor:
      return a != b;
    default:
      return a || b;
  }
}

// Computes out = left op right for one element.
inline void combine_element(DataType type, ReduceOp::Kind op, const unsigned char* left,
                            const unsigned char* right, unsigned char* out) {
  const auto integer = [&]<class T>(T) { store(out, integer_result(op, load<T>(left), load<T>(right))); };
  const auto narrow = [&]<class Bits>(Bits) {
    const Format format = format_of(type);
    const auto a = static_cast<float>(decode(format, load<Bits>(left)));
    const auto b = static_cast<float>(decode(format, load<Bits>(right)));
    store(out, static_cast<Bits>(encode(format, static_cast<double>(float_result(op, a, b)))));
  };
  switch (type) {
    case DataType::int8:
      return integer(std::int8_t{});
    case DataType::uint8:
      return integer(std::uint8_t{});
    case DataType::int32:
      return integer(std::int32_t{});
    case DataType::uint32:
      return integer(std::uint32_t{});
    case DataType::int64:
      return integer(std::int64_t{});
    case DataType::uint64:
      return integer(std::uint64_t{});
    case DataType::float16:
    case DataType::bfloat16:
      return narrow(std::uint16_t{});
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
      return narrow(std::uint8_t{});
    case DataType::float32:
      return store(out, float_result(op, load<float>(left), load<float>(right)));
    case DataType::float64:
      return store(out, float_result(op, load<double>(left), load<double>(right)));
    case DataType::boolean:
      *out = boolean_result(op, *left != 0, *right != 0);
  }
}

}  // namespace tutti::reference
