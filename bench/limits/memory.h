#pragma once

#include <cstddef>

namespace tutti::perf {

// These functions measure a copy and a sum (a[i] += b[i]). They return GB/s, counting the bytes of one
// vector. A copy moves twice this number of bytes, and a sum three times this number. Each thread has its own
// vectors, and the rates of all threads are added.
double copy_rate(std::size_t bytes, int threads);
double sum_rate(std::size_t bytes, int threads);

// Measures an upper bound for the rate of an all_reduce between two ranks of one host. Two threads
// share the work and never wait for each other. They read both inputs and write the sum to both
// outputs, with plain or non-temporal stores, whichever is faster. Returns GB/s, counting the bytes
// of one vector.
double all_reduce_bound(std::size_t bytes);

// Measures a copy that the kernel makes from another process (process_vm_readv). Returns GB/s.
double read_process_rate(std::size_t bytes);

}  // namespace tutti::perf
