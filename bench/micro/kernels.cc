// Measures the reduce kernels by type, operation and instruction set. The rates count the bytes of one
// operand.
#include <algorithm>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "core/free_delete.h"
#include "core/reduce_tables.h"

namespace tutti::perf {
namespace {

constexpr std::size_t in_cache = 128 << 10;
constexpr std::size_t alignment = 64;

AlignedBytes zeroed(std::size_t bytes) {
  AlignedBytes memory = aligned_bytes(alignment, bytes);
  std::fill_n(memory.get(), bytes, std::byte{});
  return memory;
}

void reduce(benchmark::State& state, ReduceKernel kernel, DataType type) {
  const auto left = zeroed(in_cache);
  const auto right = zeroed(in_cache);
  const std::size_t count = in_cache / size_of(type);
  for (auto iteration : state) {
    kernel(left.get(), right.get(), left.get(), count);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(in_cache));
}

constexpr DataType types[] = {DataType::float32, DataType::float64,     DataType::bfloat16,
                              DataType::float16, DataType::float8_e4m3, DataType::float8_e5m2,
                              DataType::int32,   DataType::int8};
constexpr ReduceOp::Kind operations[] = {ReduceOp::Kind::sum, ReduceOp::Kind::max};

const bool registered = [] {
  for (const KernelTable* table : runnable_kernels()) {
    for (const DataType type : types) {
      for (const ReduceOp::Kind op : operations) {
        const ReduceKernel kernel =
            table->combine[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)];
        const std::string name = "reduce/" + std::string(to_string(type)) + " " +
                                 (op == ReduceOp::Kind::sum ? "sum " : "max ") + table->isa;
        benchmark::RegisterBenchmark(name.c_str(), reduce, kernel, type);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace tutti::perf
