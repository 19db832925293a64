#pragma once

#include <algorithm>
#include <chrono>

#include <c10/util/Exception.h>

namespace tutti_torch {

// This value means "no limit". Adding it to the current time does not overflow, here or in torch's stores.
inline constexpr std::chrono::milliseconds longest_limit = std::chrono::hours(24 * 3650);

// Converts a program's time limit, and throws if it is negative. torch counts a timedelta's microseconds in
// 64 bits. So datetime.timedelta.max wraps around to a negative time of more than a hundred thousand years.
// Such a value counts as no limit.
inline std::chrono::milliseconds limit(std::chrono::milliseconds given) {
  if (given < -longest_limit) return longest_limit;
  TORCH_CHECK_VALUE(given.count() >= 0, "tutti: a timeout must not be negative: ", given.count(), " ms");
  return std::min(given, longest_limit);
}

}  // namespace tutti_torch
