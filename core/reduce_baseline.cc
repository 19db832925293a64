#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/reduce_kernels.h"

namespace tutti {
namespace {

// `Baseline` is the instruction set that every processor of the architecture has: SSE2 on x86-64, NEON on
// aarch64.
struct Baseline {
  static constexpr std::size_t bytes = 16;
  static constexpr bool converts_float16 = false;
  using Words = kernels::Vector<std::uint32_t, 4>;
  using Halves = kernels::Vector<std::uint16_t, 4>;
  using Bytes = kernels::Vector<std::uint8_t, 4>;

  [[gnu::always_inline]] static Words widen_integers(Halves stored) {
    return __builtin_convertvector(stored, Words);
  }
  [[gnu::always_inline]] static Halves narrow_integers(Words bits, std::uint16_t) {
    return __builtin_convertvector(bits, Halves);
  }
#if defined(__SSE2__)
  // Without these functions, g++ 12 would convert lane by lane.
  [[gnu::always_inline]] static Words widen_integers(Bytes stored) {
    const __m128i zero = _mm_setzero_si128();
    const __m128i bytes = _mm_cvtsi32_si128(__builtin_bit_cast(int, stored));
    return __builtin_bit_cast(Words, _mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero));
  }
  [[gnu::always_inline]] static Bytes narrow_integers(Words bits, std::uint8_t) {
    const __m128i halves = _mm_packs_epi32(__builtin_bit_cast(__m128i, bits), _mm_setzero_si128());
    return __builtin_bit_cast(Bytes, _mm_cvtsi128_si32(_mm_packus_epi16(halves, halves)));
  }
#else
  [[gnu::always_inline]] static Words widen_integers(Bytes stored) {
    return __builtin_convertvector(stored, Words);
  }
  [[gnu::always_inline]] static Bytes narrow_integers(Words bits, std::uint8_t) {
    return __builtin_convertvector(bits, Bytes);
  }
#endif
};

#if defined(__aarch64__)
constexpr const char* baseline_name = "neon";
#else
constexpr const char* baseline_name = "generic";
#endif

}  // namespace

constinit const KernelTable baseline_kernels = kernels::TableMaker<Baseline>::make(baseline_name);

}  // namespace tutti
