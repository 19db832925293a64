#pragma once

#include <cstdint>
#include <type_traits>

#include <tutti/buffer.h>

namespace tutti {

// A `FloatFormat` is a floating-point format narrower than float32: a sign bit, `Exponent` bits and
// `Mantissa` bits. With `Infinity` the largest exponent is reserved for infinities and NaN, as in
// IEEE 754. Without `Infinity`, only the pattern of all ones is NaN.
//
// Conversions round to nearest even and keep denormals. Values that are too large become infinity, or NaN in
// a format without infinity (they never saturate). NaN stays NaN: it becomes quiet, and keeps its sign and as
// much of its payload as fits.
template <int Exponent, int Mantissa, bool Infinity>
struct FloatFormat {
  static constexpr int exponent_bits = Exponent;
  static constexpr int mantissa_bits = Mantissa;
  using Bits = std::conditional_t<Exponent + Mantissa == 7, std::uint8_t, std::uint16_t>;

  struct ScalarLanes {
    using U = std::uint32_t;
    using I = std::int32_t;
    using F = float;
  };

  // Converts a float32 pattern to a narrow pattern. `Lanes` names the types of the lanes (unsigned,
  // signed, float): plain numbers or vectors of them. The function must always be inlined, since
  // kernels compile it for instruction sets that the processor may lack. If one such copy were not
  // inlined, the linker could use it for all callers. With `canonical_nan` the caller promises that
  // the only NaN is the positive quiet one without payload.
  template <class Lanes, bool canonical_nan = false>
  [[gnu::always_inline]] static constexpr typename Lanes::U narrow(typename Lanes::U value) {
    using U = typename Lanes::U;
    using I = typename Lanes::I;
    using F = typename Lanes::F;
    const U odd = (value >> shift) & 1u;
    if constexpr (Exponent == 8 && canonical_nan) {
      // This format has the exponents of float32, so rounding the whole pattern carries into the exponent
      // correctly. The canonical NaN does not change.
      return (value + ((1u << (shift - 1)) - 1u) + odd) >> shift;
    } else {
      const U sign = value & 0x80000000u;
      const U size = value ^ sign;
      U result = (size - rebias + ((1u << (shift - 1)) - 1u) + odd) >> shift;
      if constexpr (Exponent < 8) {
        // `magic` is a power of two whose lowest mantissa bit has the weight of the narrow format's lowest
        // bit. Adding it to a value below the smallest normal number makes the hardware round at that bit.
        const F sum = __builtin_bit_cast(F, size) + __builtin_bit_cast(float, magic);
        result = (I)size < (I)(U{} + smallest_normal) ? __builtin_bit_cast(U, sum) - magic : result;
        const U limit = U{} + largest;
        result = (I)result > (I)limit ? limit : result;
      }
      if constexpr (Infinity) {
        U nan = U{} + (largest | (1u << (Mantissa - 1)));
        if constexpr (!canonical_nan) nan |= (size >> shift) & mantissa_mask;
        result = (I)size > (I)(U{} + 0x7f800000u) ? nan : result;
      }
      return result | (sign >> (31 - Exponent - Mantissa));
    }
  }

  // Converts a narrow pattern (in the low bits) to a float32 pattern, exactly.
  template <class Lanes>
  [[gnu::always_inline]] static constexpr typename Lanes::U widen(typename Lanes::U value) {
    using U = typename Lanes::U;
    using I = typename Lanes::I;
    using F = typename Lanes::F;
    if constexpr (Exponent == 8) {
      return value << shift;
    } else {
      const U sign = (value >> (Exponent + Mantissa)) << 31;
      const U size = value & ((1u << (Exponent + Mantissa)) - 1u);
      const U shifted = size << shift;
      U result = shifted + rebias;
      const F denormal =
          __builtin_bit_cast(F, shifted + smallest_normal) - __builtin_bit_cast(float, smallest_normal);
      result = (I)size < (I)(U{} + (1u << Mantissa)) ? __builtin_bit_cast(U, denormal) : result;
      const U quiet = U{} + 0x7fc00000u;
      if constexpr (Infinity) {
        result = (I)size >= (I)(U{} + largest) ? shifted | 0x7f800000u : result;
        result = (I)size > (I)(U{} + largest) ? result | quiet : result;
      } else {
        result = size == (U{} + largest) ? quiet : result;
      }
      return result | sign;
    }
  }

 private:
  static constexpr int bias = (1 << (Exponent - 1)) - 1;
  static constexpr int shift = 23 - Mantissa;
  static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias) << 23;
  static constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(128 - bias) << 23;
  static constexpr std::uint32_t magic = static_cast<std::uint32_t>(151 - bias - Mantissa) << 23;
  static constexpr std::uint32_t mantissa_mask = (1u << Mantissa) - 1;
  // `largest` is the pattern of infinity, or of NaN in a format without infinity.
  static constexpr std::uint32_t largest =
      Infinity ? ((1u << Exponent) - 1u) << Mantissa : (1u << (Exponent + Mantissa)) - 1u;
};

// A `NarrowFloat` stores one number of a `FloatFormat`. It converts to float for computing.
template <class Format>
class NarrowFloat {
 public:
  using Bits = typename Format::Bits;

  NarrowFloat() = default;
  constexpr explicit NarrowFloat(float value)
      : bits_(static_cast<Bits>(Format::template narrow<Lanes>(__builtin_bit_cast(std::uint32_t, value)))) {}
  static constexpr NarrowFloat from_bits(Bits bits) {
    NarrowFloat result(0.0f);
    result.bits_ = bits;
    return result;
  }

  constexpr operator float() const { return __builtin_bit_cast(float, Format::template widen<Lanes>(bits_)); }
  constexpr Bits bits() const { return bits_; }

 private:
  using Lanes = typename Format::ScalarLanes;
  Bits bits_;
};

using Float16Format = FloatFormat<5, 10, true>;
using BFloat16Format = FloatFormat<8, 7, true>;
// These are the OCP 8-bit formats. e4m3 is the variant called "fn": it has no infinities, its largest value
// is 448, and larger values become NaN.
using Float8E4M3Format = FloatFormat<4, 3, false>;
using Float8E5M2Format = FloatFormat<5, 2, true>;

using float16 = NarrowFloat<Float16Format>;
using bfloat16 = NarrowFloat<BFloat16Format>;
using float8_e4m3 = NarrowFloat<Float8E4M3Format>;
using float8_e5m2 = NarrowFloat<Float8E5M2Format>;

template <>
struct DataTypeOf<float16> {
  static constexpr DataType value = DataType::float16;
};
template <>
struct DataTypeOf<bfloat16> {
  static constexpr DataType value = DataType::bfloat16;
};
template <>
struct DataTypeOf<float8_e4m3> {
  static constexpr DataType value = DataType::float8_e4m3;
};
template <>
struct DataTypeOf<float8_e5m2> {
  static constexpr DataType value = DataType::float8_e5m2;
};

}  // namespace tutti
