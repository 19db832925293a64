#pragma once

#include <cstddef>

namespace tutti::perf {

// These return GB/s, counting the bytes of one vector. A copy moves twice as many bytes, a sum (a[i] += b[i])
// three times.
double copy_rate(std::size_t bytes, int threads);
double sum_rate(std::size_t bytes, int threads);

// Measures the upper bound of an all_reduce between two ranks of one host: two threads, which share the work
// and never wait for each other, read both inputs and write the sum to both outputs. Returns GB/s, counting
// the bytes of one vector, with plain or non-temporal stores, whichever is faster.
double all_reduce_bound(std::size_t bytes);

// Returns the GB/s of a copy that the kernel makes from another process (process_vm_readv).
double read_process_rate(std::size_t bytes);

}  // namespace tutti::perf
