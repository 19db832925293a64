// Compiled with -mavx2 -mf16c; runs only where the dispatcher found both.
#include <immintrin.h>

#include <tutti/core/reduce_kernels.h>

namespace tutti {
namespace {

struct Avx2 {
  static constexpr std::size_t bytes = 32;
  static constexpr bool converts_float16 = true;
  using Floats = kernels::Vector<float, 8>;
  using Halves = kernels::Vector<std::uint16_t, 8>;

  [[gnu::always_inline]] static Floats widen_float16(Halves stored) {
    return __builtin_bit_cast(Floats, _mm256_cvtph_ps(__builtin_bit_cast(__m128i, stored)));
  }
  [[gnu::always_inline]] static Halves narrow_float16(Floats computed) {
    return __builtin_bit_cast(
        Halves, _mm256_cvtps_ph(__builtin_bit_cast(__m256, computed), _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace

constinit const KernelTable avx2_kernels = kernels::TableMaker<Avx2>::make("avx2");

}  // namespace tutti
