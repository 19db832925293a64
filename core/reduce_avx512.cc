// This file is compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl. Its code runs only on processors
// that have all four.
#include <immintrin.h>

#include "core/reduce_kernels.h"

namespace tutti {
namespace {

// AVX512-BF16 is not used, since its conversions flush denormals.
struct Avx512 {
  static constexpr std::size_t bytes = 64;
  static constexpr bool converts_float16 = true;
  // This file uses masked intrinsics with a full mask. With the unmasked ones, g++ 12 warns about an
  // uninitialised register in its own header.
  static constexpr __mmask16 all = 0xffff;
  using Floats = kernels::Vector<float, 16>;
  using Words = kernels::Vector<std::uint32_t, 16>;
  using Halves = kernels::Vector<std::uint16_t, 16>;
  using Bytes = kernels::Vector<std::uint8_t, 16>;

  [[gnu::always_inline]] static Words widen_integers(Halves stored) {
    return __builtin_bit_cast(Words, _mm512_maskz_cvtepu16_epi32(all, __builtin_bit_cast(__m256i, stored)));
  }
  [[gnu::always_inline]] static Words widen_integers(Bytes stored) {
    return __builtin_bit_cast(Words, _mm512_maskz_cvtepu8_epi32(all, __builtin_bit_cast(__m128i, stored)));
  }
  [[gnu::always_inline]] static Halves narrow_integers(Words bits, std::uint16_t) {
    return __builtin_bit_cast(Halves, _mm512_maskz_cvtepi32_epi16(all, __builtin_bit_cast(__m512i, bits)));
  }
  [[gnu::always_inline]] static Bytes narrow_integers(Words bits, std::uint8_t) {
    return __builtin_bit_cast(Bytes, _mm512_maskz_cvtepi32_epi8(all, __builtin_bit_cast(__m512i, bits)));
  }

  [[gnu::always_inline]] static Floats widen_float16(Halves stored) {
    __m512 value = _mm512_maskz_cvtph_ps(all, __builtin_bit_cast(__m256i, stored));
    // This statement hides from Clang that the value was converted from float16. Otherwise Clang would
    // compare in float16, lane by lane.
    asm("" : "+v"(value));
    return __builtin_bit_cast(Floats, value);
  }
  [[gnu::always_inline]] static Halves narrow_float16(Floats computed) {
    return __builtin_bit_cast(
        Halves, _mm512_maskz_cvtps_ph(all, __builtin_bit_cast(__m512, computed), _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace

constinit const KernelTable avx512_kernels = kernels::TableMaker<Avx512>::make("avx512");

}  // namespace tutti
