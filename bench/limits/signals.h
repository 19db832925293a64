#pragma once

namespace tutti::perf {

enum class Waiting { spin, yield, futex };

// Returns half a round trip in microseconds between two processes, through two flags in shared memory, each
// on a cache line of its own.
double cache_line_pingpong(Waiting how);
// Returns the microseconds of a turn in which each of two processes sets its flag, then awaits the other's:
// the cost of an all_reduce between two ranks that does nothing except the exchange.
double cache_line_exchange();

}  // namespace tutti::perf
