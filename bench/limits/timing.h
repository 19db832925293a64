#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace tutti::perf {

inline constexpr std::size_t mebibyte = std::size_t{1} << 20;
// Each metric is measured for this long.
inline constexpr std::chrono::milliseconds span{60};

double seconds_now();
// Returns the median time of one call in seconds, measured over `span`. The clock is read after every `calls`
// calls.
double time_of(const std::function<void()>& call, int calls);

// Ends the program, since without this measurement the others of the run would be misread.
[[noreturn]] void fail(const char* what);

}  // namespace tutti::perf
