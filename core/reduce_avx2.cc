// This file is compiled with -mavx2 -mf16c. Its code runs only on processors that have both.
#include <immintrin.h>

#include "core/reduce_kernels.h"

namespace tutti {
namespace {

struct Avx2 {
  static constexpr std::size_t bytes = 32;
  static constexpr bool converts_float16 = true;
  using Floats = kernels::Vector<float, 8>;
  using Words = kernels::Vector<std::uint32_t, 8>;
  using Halves = kernels::Vector<std::uint16_t, 8>;
  using Bytes = kernels::Vector<std::uint8_t, 8>;

  // These functions replace the compiler's own conversions, since g++ 12 converts narrow integers lane by
  // lane.
  [[gnu::always_inline]] static Words widen_integers(Halves stored) {
    return __builtin_bit_cast(Words, _mm256_cvtepu16_epi32(__builtin_bit_cast(__m128i, stored)));
  }
  [[gnu::always_inline]] static Words widen_integers(Bytes stored) {
    const __m128i bytes = _mm_cvtsi64_si128(__builtin_bit_cast(long long, stored));
    return __builtin_bit_cast(Words, _mm256_cvtepu8_epi32(bytes));
  }
  [[gnu::always_inline]] static Halves narrow_integers(Words bits, std::uint16_t) {
    const __m256i words = __builtin_bit_cast(__m256i, bits);
    return __builtin_bit_cast(
        Halves, _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
  [[gnu::always_inline]] static Bytes narrow_integers(Words bits, std::uint8_t) {
    const __m128i halves = __builtin_bit_cast(__m128i, narrow_integers(bits, std::uint16_t{}));
    return __builtin_bit_cast(Bytes, _mm_cvtsi128_si64(_mm_packus_epi16(halves, halves)));
  }

  [[gnu::always_inline]] static Floats widen_float16(Halves stored) {
    __m256 value = _mm256_cvtph_ps(__builtin_bit_cast(__m128i, stored));
    // This statement hides from Clang that the value was converted from float16. Otherwise Clang would
    // compare in float16, lane by lane.
    asm("" : "+x"(value));
    return __builtin_bit_cast(Floats, value);
  }
  [[gnu::always_inline]] static Halves narrow_float16(Floats computed) {
    return __builtin_bit_cast(
        Halves, _mm256_cvtps_ph(__builtin_bit_cast(__m256, computed), _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace

constinit const KernelTable avx2_kernels = kernels::TableMaker<Avx2>::make("avx2");

}  // namespace tutti
