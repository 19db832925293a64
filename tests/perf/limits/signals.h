#pragma once

namespace tutti::perf {

enum class Waiting { spin, yield, futex };

// Half a round trip in microseconds between two processes, through two flags in shared memory, each on a
// cache line of its own.
double cache_line_pingpong(Waiting how);

}  // namespace tutti::perf
