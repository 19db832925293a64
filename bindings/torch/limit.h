#pragma once

#include <algorithm>
#include <chrono>

#include <c10/util/Exception.h>

namespace tutti_torch {

// Stands for "no limit": fits wherever it is added to a clock, here and in torch's stores.
inline constexpr std::chrono::milliseconds longest_limit = std::chrono::hours(24 * 3650);

// A time limit that a program gave; throws if that is negative. torch counts a timedelta's microseconds in 64
// bits, where datetime.timedelta.max wraps round to less than minus a hundred thousand years: that is taken
// for what was meant.
inline std::chrono::milliseconds limit(std::chrono::milliseconds given) {
  if (given < -longest_limit) return longest_limit;
  TORCH_CHECK_VALUE(given.count() >= 0, "tutti: a timeout must not be negative: ", given.count(), " ms");
  return std::min(given, longest_limit);
}

}  // namespace tutti_torch
