#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace tutti {

// `timespec_of` converts a duration to the form that system calls use. The duration must not be negative.
inline timespec timespec_of(std::chrono::nanoseconds time) {
  constexpr std::int64_t second = 1'000'000'000;
  return {static_cast<time_t>(time.count() / second), static_cast<long>(time.count() % second)};
}

}  // namespace tutti
