#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace tutti::perf {

inline constexpr std::size_t mebibyte = std::size_t{1} << 20;
// Most metrics are measured for this long. The rates of TCP are measured for twice as long.
inline constexpr std::chrono::milliseconds span{60};

double seconds_now();
// Repeats `call` for the time `span`. Returns the median time of one call in seconds. Reads the clock after
// every `calls` calls.
double time_of(const std::function<void()>& call, int calls);

// Ends the program because the call `what` has failed. The other results would be misleading
// without its result.
[[noreturn]] void fail(const char* what);

}  // namespace tutti::perf
