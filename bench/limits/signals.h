#pragma once

namespace tutti::perf {

enum class Waiting { spin, yield, futex };

// Returns the microseconds of half a round trip between two processes. They signal through two flags in
// shared memory, each on a cache line of its own.
double cache_line_pingpong(Waiting how);
// Returns the microseconds of an exchange, in which each of two processes sets its flag and then waits for
// the other's flag. An all_reduce between two ranks needs at least this long.
double cache_line_exchange();

}  // namespace tutti::perf
