#pragma once

#include <algorithm>
#include <chrono>

#include <tutti/deadline.h>

namespace tutti {

// Returns a deadline that is earlier than the given one by a reserve: a quarter of the time that is left, but
// at most `most`. `never` stays `never`. A caller that misses the earlier deadline uses the reserve to report
// why.
inline Deadline without_reserve(Deadline deadline, std::chrono::nanoseconds most) {
  if (deadline.is_never()) return deadline;
  const std::chrono::nanoseconds left = deadline.remaining();
  return Deadline::after(left - std::min(left / 4, most));
}

}  // namespace tutti
