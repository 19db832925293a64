#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tutti/float16.h>

#include "core/reduce_tables.h"

// These are the reduce kernels. They are written once, with the compiler's vector types, and compiled once
// for each instruction set. Each translation unit defines its instruction set as a type `Isa` in an unnamed
// namespace. This makes every template that depends on `Isa` local to the translation unit, and all other
// code is always inlined. So no function that was compiled for one set can be linked into code for another.
// For the same reason, this file calls no function of the standard library.
//
// The bits of a result do not depend on the instruction set. A vector lane and the scalar tail do the same
// IEEE operations in the same order, and the compiler does not contract them into fused operations. Every
// computed NaN becomes the positive quiet NaN, since processors choose the sign and payload of a NaN
// differently.
namespace tutti::kernels {

template <class T, std::size_t N>
struct VectorOf {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, std::size_t N>
using Vector = typename VectorOf<T, N>::type;

// `VectorLanes` are vectors of unsigned, signed and float lanes of 32 bits.
template <std::size_t N>
struct VectorLanes {
  using U = Vector<std::uint32_t, N>;
  using I = Vector<std::int32_t, N>;
  using F = Vector<float, N>;
};

template <class V>
[[gnu::always_inline]] inline V load(const std::byte* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof(V));
  return value;
}

template <class V>
[[gnu::always_inline]] inline void store(std::byte* to, V value) {
  __builtin_memcpy(to, &value, sizeof(V));
}

// --- stored elements, and the types that they are computed in ---

template <class T>
struct Native {
  using Stored = T;
  using Computed = T;
  template <class Isa, class V>
  [[gnu::always_inline]] static V widen(V stored) {
    return stored;
  }
  template <class Isa, class V>
  [[gnu::always_inline]] static V narrow(V computed) {
    return computed;
  }
};

// A `Narrow` element is stored in a `Format` of 8 or 16 bits, and computed in float32. `narrow` takes only
// values that have passed through `canonical`.
template <class Format>
struct Narrow {
  using Stored = typename Format::Bits;
  using Computed = float;

  template <class Isa>
  [[gnu::always_inline]] static float widen(Stored stored) {
    return __builtin_bit_cast(float, Format::template widen<typename Format::ScalarLanes>(stored));
  }
  template <class Isa>
  [[gnu::always_inline]] static Stored narrow(float computed) {
    const auto bits = __builtin_bit_cast(std::uint32_t, computed);
    return static_cast<Stored>(Format::template narrow<typename Format::ScalarLanes, true>(bits));
  }

  template <class Isa, class V>
  [[gnu::always_inline]] static auto widen(V stored) {
    constexpr std::size_t lanes = Isa::bytes / sizeof(float);
    using Lanes = VectorLanes<lanes>;
    if constexpr (std::is_same_v<Format, Float16Format> && Isa::converts_float16) {
      return Isa::widen_float16(stored);
    } else {
      const auto bits = Isa::widen_integers(stored);
      return __builtin_bit_cast(typename Lanes::F, Format::template widen<Lanes>(bits));
    }
  }
  template <class Isa, class V>
  [[gnu::always_inline]] static auto narrow(V computed) {
    constexpr std::size_t lanes = Isa::bytes / sizeof(float);
    using Lanes = VectorLanes<lanes>;
    if constexpr (std::is_same_v<Format, Float16Format> && Isa::converts_float16) {
      return Isa::narrow_float16(computed);
    } else {
      const auto bits = Format::template narrow<Lanes, true>(__builtin_bit_cast(typename Lanes::U, computed));
      return Isa::narrow_integers(bits, Stored{});
    }
  }
};

// --- operations; `T` is the type of a lane, `V` is `T` or a vector of it ---

template <class T, class V>
[[gnu::always_inline]] inline V canonical(V value) {
  if constexpr (std::is_floating_point_v<T>) {
    const V nan = V{} + static_cast<T>(__builtin_nan(""));
    return value == value ? value : nan;
  } else {
    return value;
  }
}

struct Sum {
  template <class T, class V>
  [[gnu::always_inline]] static V apply(V left, V right) {
    return canonical<T>(static_cast<V>(left + right));
  }
};

struct Product {
  template <class T, class V>
  [[gnu::always_inline]] static V apply(V left, V right) {
    return canonical<T>(static_cast<V>(left * right));
  }
};

template <bool Smaller>
struct Extreme {
  template <class T, class V>
  [[gnu::always_inline]] static V apply(V left, V right) {
    V result;
    if constexpr (Smaller) {
      result = left < right ? left : right;
    } else {
      result = left > right ? left : right;
    }
    if constexpr (std::is_floating_point_v<T>) {
      // If only the right side is NaN, the comparison has already chosen it.
      result = left == left ? result : left;
    }
    return canonical<T>(result);
  }
};

struct BitAnd {
  template <class T, class V>
  [[gnu::always_inline]] static V apply(V left, V right) {
    return static_cast<V>(left & right);
  }
};

struct BitOr {
  template <class T, class V>
  [[gnu::always_inline]] static V apply(V left, V right) {
    return static_cast<V>(left | right);
  }
};

struct BitXor {
  template <class T, class V>
  [[gnu::always_inline]] static V apply(V left, V right) {
    return static_cast<V>(left ^ right);
  }
};

// `Logical` treats any byte but 0 as true. Its results are 0 or 1.
template <class Op>
struct Logical {
  template <class T, class V>
  [[gnu::always_inline]] static V apply(V left, V right) {
    const V zero{};
    const V one = static_cast<V>(zero + static_cast<T>(1));
    return Op::template apply<T>((V)(left != zero ? one : zero), (V)(right != zero ? one : zero));
  }
};

// --- loops ---

template <class Isa, class Element, class Op>
void combine(const void* left, const void* right, void* out, std::size_t count) {
  using Stored = typename Element::Stored;
  using Computed = typename Element::Computed;
  constexpr std::size_t lanes = Isa::bytes / sizeof(Computed);
  using StoredVector = Vector<Stored, lanes>;
  const auto* a = static_cast<const std::byte*>(left);
  const auto* b = static_cast<const std::byte*>(right);
  auto* to = static_cast<std::byte*>(out);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = Element::template widen<Isa>(load<StoredVector>(a + i * sizeof(Stored)));
    const auto y = Element::template widen<Isa>(load<StoredVector>(b + i * sizeof(Stored)));
    store(to + i * sizeof(Stored), Element::template narrow<Isa>(Op::template apply<Computed>(x, y)));
  }
  for (; i < count; ++i) {
    const auto x = Element::template widen<Isa>(load<Stored>(a + i * sizeof(Stored)));
    const auto y = Element::template widen<Isa>(load<Stored>(b + i * sizeof(Stored)));
    store(to + i * sizeof(Stored), Element::template narrow<Isa>(Op::template apply<Computed>(x, y)));
  }
}

// Computes out[i] = in[i] * factor, or in[i] / factor if `Divide`, for floating-point elements.
template <class Isa, class Element, bool Divide>
[[gnu::always_inline]] inline void map_floats(const void* in, void* out, std::size_t count,
                                              typename Element::Computed factor) {
  using Stored = typename Element::Stored;
  using Computed = typename Element::Computed;
  constexpr std::size_t lanes = Isa::bytes / sizeof(Computed);
  using StoredVector = Vector<Stored, lanes>;
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = Element::template widen<Isa>(load<StoredVector>(from + i * sizeof(Stored)));
    const auto y = canonical<Computed>(Divide ? x / factor : x * factor);
    store(to + i * sizeof(Stored), Element::template narrow<Isa>(y));
  }
  for (; i < count; ++i) {
    const Computed x = Element::template widen<Isa>(load<Stored>(from + i * sizeof(Stored)));
    const Computed y = canonical<Computed>(Divide ? x / factor : x * factor);
    store(to + i * sizeof(Stored), Element::template narrow<Isa>(y));
  }
}

template <class Isa, class Element>
void scale_floats(const void* in, void* out, std::size_t count, double factor) {
  map_floats<Isa, Element, false>(in, out, count, static_cast<typename Element::Computed>(factor));
}

template <class Isa, class Element>
void divide_floats(const void* in, void* out, std::size_t count, std::size_t divisor) {
  map_floats<Isa, Element, true>(in, out, count, static_cast<typename Element::Computed>(divisor));
}

// Computes in float64 and rounds towards zero. A value out of range becomes the nearest end of the range, and
// NaN becomes 0.
template <class Isa, class T>
void scale_integers(const void* in, void* out, std::size_t count, double factor) {
  constexpr int bits = 8 * static_cast<int>(sizeof(T)) - (std::is_signed_v<T> ? 1 : 0);
  using Unsigned = std::make_unsigned_t<T>;
  constexpr T most = static_cast<T>(static_cast<Unsigned>(-1) >> (std::is_signed_v<T> ? 1 : 0));
  constexpr T least = std::is_signed_v<T> ? static_cast<T>(-most - 1) : T{0};
  constexpr double beyond = 2.0 * static_cast<double>(std::uint64_t{1} << (bits - 1));
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(load<T>(from + i * sizeof(T))) * factor;
    T result = 0;
    if (value >= beyond) {
      result = most;
    } else if (value <= static_cast<double>(least)) {
      result = least;
    } else if (value == value) {
      result = static_cast<T>(value);
    }
    store(to + i * sizeof(T), result);
  }
}

template <class Isa, class T>
void divide_integers(const void* in, void* out, std::size_t count, std::size_t divisor) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  const auto by = static_cast<Wide>(divisor);
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  for (std::size_t i = 0; i < count; ++i) {
    store(to + i * sizeof(T), static_cast<T>(load<T>(from + i * sizeof(T)) / by));
  }
}

// --- the table ---

template <class Isa>
class TableMaker {
 public:
  static consteval KernelTable make(const char* isa) {
    KernelTable table{};
    table.isa = isa;
    integers<std::int8_t>(table, DataType::int8);
    integers<std::uint8_t>(table, DataType::uint8);
    integers<std::int32_t>(table, DataType::int32);
    integers<std::uint32_t>(table, DataType::uint32);
    integers<std::int64_t>(table, DataType::int64);
    integers<std::uint64_t>(table, DataType::uint64);
    floats<Narrow<Float16Format>>(table, DataType::float16);
    floats<Narrow<BFloat16Format>>(table, DataType::bfloat16);
    floats<Native<float>>(table, DataType::float32);
    floats<Native<double>>(table, DataType::float64);
    floats<Narrow<Float8E4M3Format>>(table, DataType::float8_e4m3);
    floats<Narrow<Float8E5M2Format>>(table, DataType::float8_e5m2);
    booleans(table);
    return table;
  }

 private:
  using Kind = ReduceOp::Kind;

  static constexpr ReduceKernel& entry(KernelTable& table, DataType type, Kind kind) {
    return table.combine[static_cast<int>(type)][static_cast<int>(kind)];
  }

  static constexpr void sums(KernelTable& table, DataType type, ReduceKernel kernel) {
    entry(table, type, Kind::sum) = kernel;
    entry(table, type, Kind::avg) = kernel;
    entry(table, type, Kind::premultiplied_sum) = kernel;
  }

  template <class T>
  static constexpr void integers(KernelTable& table, DataType type) {
    using Unsigned = Native<std::make_unsigned_t<T>>;  // signed types use it as well, since it wraps around
    sums(table, type, combine<Isa, Unsigned, Sum>);
    entry(table, type, Kind::product) = combine<Isa, Unsigned, Product>;
    entry(table, type, Kind::min) = combine<Isa, Native<T>, Extreme<true>>;
    entry(table, type, Kind::max) = combine<Isa, Native<T>, Extreme<false>>;
    entry(table, type, Kind::bit_and) = combine<Isa, Unsigned, BitAnd>;
    entry(table, type, Kind::bit_or) = combine<Isa, Unsigned, BitOr>;
    entry(table, type, Kind::bit_xor) = combine<Isa, Unsigned, BitXor>;
    table.scale[static_cast<int>(type)] = scale_integers<Isa, T>;
    table.divide[static_cast<int>(type)] = divide_integers<Isa, T>;
  }

  template <class Element>
  static constexpr void floats(KernelTable& table, DataType type) {
    sums(table, type, combine<Isa, Element, Sum>);
    entry(table, type, Kind::product) = combine<Isa, Element, Product>;
    entry(table, type, Kind::min) = combine<Isa, Element, Extreme<true>>;
    entry(table, type, Kind::max) = combine<Isa, Element, Extreme<false>>;
    table.scale[static_cast<int>(type)] = scale_floats<Isa, Element>;
    table.divide[static_cast<int>(type)] = divide_floats<Isa, Element>;
  }

  static constexpr void booleans(KernelTable& table) {
    using Byte = Native<std::uint8_t>;
    for (const Kind kind : {Kind::sum, Kind::max, Kind::bit_or}) {
      entry(table, DataType::boolean, kind) = combine<Isa, Byte, Logical<BitOr>>;
    }
    for (const Kind kind : {Kind::product, Kind::min, Kind::bit_and}) {
      entry(table, DataType::boolean, kind) = combine<Isa, Byte, Logical<BitAnd>>;
    }
    entry(table, DataType::boolean, Kind::bit_xor) = combine<Isa, Byte, Logical<BitXor>>;
  }
};

}  // namespace tutti::kernels
