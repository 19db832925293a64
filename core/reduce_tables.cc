#include "core/reduce_tables.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tutti {
namespace {

// `Runnable` lists the tables that this processor can run, best first. The baseline is last.
struct Runnable {
  const KernelTable* tables[3];
  std::size_t count = 0;

  Runnable() {
#if defined(__x86_64__)
    // __builtin_cpu_supports also checks that the operating system saves the wide registers.
    __builtin_cpu_init();
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx512) tables[count++] = &avx512_kernels;
    if (__builtin_cpu_supports("avx2") && has_f16c()) tables[count++] = &avx2_kernels;
#endif
    tables[count++] = &baseline_kernels;
  }

#if defined(__x86_64__)
  // This function asks CPUID itself, since not every compiler's __builtin_cpu_supports knows "f16c".
  static bool has_f16c() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }
#endif
};

const Runnable& runnable() {
  static const Runnable found;
  return found;
}

}  // namespace

std::span<const KernelTable* const> runnable_kernels() { return {runnable().tables, runnable().count}; }

}  // namespace tutti
