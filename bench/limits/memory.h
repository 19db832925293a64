#pragma once

#include <cstddef>

namespace tutti::perf {

// GB/s of one vector; a copy moves twice, a sum (a[i] += b[i]) three times that.
double copy_rate(std::size_t bytes, int threads);
double sum_rate(std::size_t bytes, int threads);

// The bound of an all_reduce between two ranks of one host: two threads, which share the work and never wait
// for each other, read both inputs and write the sum to both outputs. GB/s of one vector, by the better of
// plain and non-temporal stores.
double all_reduce_bound(std::size_t bytes);

// A copy by the kernel out of another process (process_vm_readv), GB/s.
double read_process_rate(std::size_t bytes);

}  // namespace tutti::perf
