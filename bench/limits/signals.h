#pragma once

namespace tutti::perf {

enum class Waiting { spin, yield, futex };

// Half a round trip in microseconds between two processes, through two flags in shared memory, each on a
// cache line of its own.
double cache_line_pingpong(Waiting how);
// Microseconds of a turn in which each of two processes sets its flag, then awaits the other's: what is left
// of an all_reduce between two ranks when nothing but the exchange is done.
double cache_line_exchange();

}  // namespace tutti::perf
