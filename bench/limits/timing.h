#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace tutti::perf {

inline constexpr std::size_t mebibyte = std::size_t{1} << 20;
// How long one metric is measured.
inline constexpr std::chrono::milliseconds span{60};

double seconds_now();
// The median time in seconds of one call over `span`; the clock is read once in `calls`.
double time_of(const std::function<void()>& call, int calls);

// Ends the program: without this measurement the others of the run would be misread.
[[noreturn]] void fail(const char* what);

}  // namespace tutti::perf
