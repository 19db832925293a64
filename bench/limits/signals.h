#pragma once

namespace tutti::perf {

enum class Waiting { spin, yield, futex };

// Returns half the time of a round trip between two processes, in microseconds. They signal through two flags
// in shared memory, each on a separate cache line.
double cache_line_pingpong(Waiting how);
// Returns the time of an exchange, in microseconds. In an exchange, each of two processes sets its own flag
// and then waits for the other's flag. An all_reduce between two ranks needs at least this long.
double cache_line_exchange();

}  // namespace tutti::perf
