#pragma once

#include <cstddef>
#include <span>

#include <tutti/reduce_op.h>
#include <tutti/types.h>

// These tables hold the reduce kernels of each instruction set, for the dispatcher and for tests that compare
// them.
namespace tutti {

// A `ReduceKernel` computes out[i] = left[i] op right[i]. `out` may equal `left` or `right` exactly; other
// overlap is not allowed. Pointers need no alignment. Integers wrap around. 16-bit and 8-bit floats are
// computed in float32. Each result is rounded once, to nearest even (float16.h says how numbers that are too
// large are rounded). min and max return NaN if either side is NaN. Every NaN in `out` is the positive quiet
// NaN. So every instruction set gives the same bits, provided that the calling thread rounds to nearest and
// keeps denormals, as threads do by default.
using ReduceKernel = void (*)(const void* left, const void* right, void* out, std::size_t count);
using ScaleKernel = void (*)(const void* in, void* out, std::size_t count, double factor);
using DivideKernel = void (*)(const void* in, void* out, std::size_t count, std::size_t divisor);

inline constexpr int reduce_kind_count = 10;

// A `KernelTable` is indexed by DataType and ReduceOp::Kind. Its entry is null where the operation is not
// defined on the type.
struct KernelTable {
  const char* isa;
  ReduceKernel combine[data_type_count][reduce_kind_count];
  ScaleKernel scale[data_type_count];
  DivideKernel divide[data_type_count];
};

// Returns the tables that this processor can run, best first. The last is always the baseline of the
// architecture.
std::span<const KernelTable* const> runnable_kernels();

extern const KernelTable baseline_kernels;
#if defined(__x86_64__)
extern const KernelTable avx2_kernels;
extern const KernelTable avx512_kernels;
#endif

}  // namespace tutti
