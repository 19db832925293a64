#include <tutti/core/reduce_kernels.h>

namespace tutti {
namespace {

// What every processor of the architecture has: SSE2 on x86-64, NEON on aarch64.
struct Baseline {
  static constexpr std::size_t bytes = 16;
  static constexpr bool converts_float16 = false;
};

#if defined(__aarch64__)
constexpr const char* baseline_name = "neon";
#else
constexpr const char* baseline_name = "generic";
#endif

}  // namespace

constinit const KernelTable baseline_kernels = kernels::TableMaker<Baseline>::make(baseline_name);

}  // namespace tutti
