#pragma once

#include <cstddef>
#include <span>

#include "core/reduce.h"

// The reduce kernels of each instruction set, for the dispatcher and for tests that compare them.
namespace tutti {

using ScaleKernel = void (*)(const void* in, void* out, std::size_t count, double factor);
using DivideKernel = void (*)(const void* in, void* out, std::size_t count, std::size_t divisor);

inline constexpr int reduce_kind_count = 10;

// Indexed by DataType and ReduceOp::Kind; null where the operation is not defined on the type.
struct KernelTable {
  const char* isa;
  ReduceKernel combine[data_type_count][reduce_kind_count];
  ScaleKernel scale[data_type_count];
  DivideKernel divide[data_type_count];
};

// The tables that this processor can run, best first; the last is always the baseline of the architecture.
std::span<const KernelTable* const> runnable_kernels();

extern const KernelTable baseline_kernels;
#if defined(__x86_64__)
extern const KernelTable avx2_kernels;
extern const KernelTable avx512_kernels;
#endif

}  // namespace tutti
