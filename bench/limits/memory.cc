#include "bench/limits/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

#include <sys/uio.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench/limits/process.h"
#include "bench/limits/timing.h"
#include "core/free_delete.h"

namespace tutti::perf {
namespace {

using Memory = std::unique_ptr<float, FreeDelete>;

// Allocates page-aligned memory and touches its pages.
Memory allocate(std::size_t bytes) {
  Memory memory(static_cast<float*>(std::aligned_alloc(4096, bytes)));
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory.get(), 0, bytes);
  return memory;
}

// Runs work(thread) on `threads` new threads, and returns the sum of their results.
double on_threads(int threads, const std::function<double(int)>& work) {
  std::vector<double> results(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] { results[static_cast<std::size_t>(i)] = work(i); });
  }
  for (std::thread& thread : running) thread.join();
  return std::accumulate(results.begin(), results.end(), 0.0);
}

using Kernel = void (*)(float* to, const float* from, std::size_t count);

void copy(float* to, const float* from, std::size_t count) { std::memcpy(to, from, count * sizeof(float)); }

[[gnu::always_inline]] inline void sum_loop(float* __restrict to, const float* __restrict from,
                                            std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}
void sum_baseline(float* to, const float* from, std::size_t count) { sum_loop(to, from, count); }

// A `Bound` is a kernel for `all_reduce_bound`: it computes out0 = out1 = in0 + in1.
using Bound = void (*)(const float* in0, const float* in1, float* out0, float* out1, std::size_t count);

[[gnu::always_inline]] inline void bound_loop(const float* __restrict in0, const float* __restrict in1,
                                              float* __restrict out0, float* __restrict out1,
                                              std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out0[i] = out1[i] = in0[i] + in1[i];
}
void bound_baseline(const float* in0, const float* in1, float* out0, float* out1, std::size_t count) {
  bound_loop(in0, in1, out0, out1, count);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void sum_avx2(float* to, const float* from, std::size_t count) {
  sum_loop(to, from, count);
}
[[gnu::target("avx512f")]] void sum_avx512(float* to, const float* from, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16)
    _mm512_store_ps(to + i, _mm512_add_ps(_mm512_load_ps(to + i), _mm512_load_ps(from + i)));
}
[[gnu::target("avx2")]] void bound_avx2(const float* in0, const float* in1, float* out0, float* out1,
                                        std::size_t count) {
  bound_loop(in0, in1, out0, out1, count);
}
[[gnu::target("avx512f")]] void bound_avx512(const float* in0, const float* in1, float* out0, float* out1,
                                             std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) {
    const __m512 sum = _mm512_add_ps(_mm512_load_ps(in0 + i), _mm512_load_ps(in1 + i));
    _mm512_store_ps(out0 + i, sum);
    _mm512_store_ps(out1 + i, sum);
  }
}
void bound_streamed(const float* in0, const float* in1, float* out0, float* out1, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 4) {
    const __m128 sum = _mm_add_ps(_mm_load_ps(in0 + i), _mm_load_ps(in1 + i));
    _mm_stream_ps(out0 + i, sum);
    _mm_stream_ps(out1 + i, sum);
  }
  _mm_sfence();
}
[[gnu::target("avx512f")]] void bound_streamed_avx512(const float* in0, const float* in1, float* out0,
                                                      float* out1, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) {
    const __m512 sum = _mm512_add_ps(_mm512_load_ps(in0 + i), _mm512_load_ps(in1 + i));
    _mm512_stream_ps(out0 + i, sum);
    _mm512_stream_ps(out1 + i, sum);
  }
  _mm_sfence();
}

Kernel sum_kernel() {
  if (__builtin_cpu_supports("avx512f")) return sum_avx512;
  return __builtin_cpu_supports("avx2") ? sum_avx2 : sum_baseline;
}
std::vector<Bound> bound_kernels() {
  std::vector<Bound> kernels = {bound_baseline, bound_streamed};
  if (__builtin_cpu_supports("avx2")) kernels.push_back(bound_avx2);
  if (__builtin_cpu_supports("avx512f")) {
    kernels.push_back(bound_avx512);
    kernels.push_back(bound_streamed_avx512);
  }
  return kernels;
}
#else
Kernel sum_kernel() { return sum_baseline; }
std::vector<Bound> bound_kernels() { return {bound_baseline}; }
#endif

// Measures a kernel on several threads, each with its own pair of buffers.
double rate(Kernel kernel, std::size_t bytes, int threads) {
  return on_threads(threads, [&](int) {
    const Memory to = allocate(bytes);
    const Memory from = allocate(bytes);
    const int calls = bytes > 8 * mebibyte ? 1 : 16;
    const double time = time_of([&] { kernel(to.get(), from.get(), bytes / sizeof(float)); }, calls);
    return static_cast<double>(bytes) / time / 1e9;
  });
}

}  // namespace

double copy_rate(std::size_t bytes, int threads) { return rate(copy, bytes, threads); }
double sum_rate(std::size_t bytes, int threads) { return rate(sum_kernel(), bytes, threads); }

double all_reduce_bound(std::size_t bytes) {
  const Memory in0 = allocate(bytes);
  const Memory in1 = allocate(bytes);
  const Memory out0 = allocate(bytes);
  const Memory out1 = allocate(bytes);
  const std::size_t half = bytes / sizeof(float) / 2;
  double best = 0;
  for (const Bound kernel : bound_kernels()) {
    best = std::max(
        best, on_threads(2, [&](int thread) {
          const std::size_t at = static_cast<std::size_t>(thread) * half;
          const double time = time_of(
              [&] { kernel(in0.get() + at, in1.get() + at, out0.get() + at, out1.get() + at, half); }, 1);
          return static_cast<double>(bytes) / 2 / time / 1e9;
        }));
  }
  return best;
}

double read_process_rate(std::size_t bytes) {
  const Memory source = allocate(bytes);
  const Memory to = allocate(bytes);
  // The child writes to the memory, so that the kernel gives the child separate pages.
  Child child([&] {
    std::memset(source.get(), 1, bytes);
    pause();
  });
  usleep(50'000);
  const double time = time_of(
      [&] {
        const iovec local{to.get(), bytes};
        const iovec remote{source.get(), bytes};
        if (process_vm_readv(child.pid(), &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes))
          fail("process_vm_readv");
      },
      1);
  return static_cast<double>(bytes) / time / 1e9;
}

}  // namespace tutti::perf
