#pragma once

#include <algorithm>
#include <chrono>

#include <tutti/deadline.h>

namespace tutti {

// Returns an earlier deadline that leaves a reserve before the given one: a quarter of the time that is left,
// but at most `most`. `never` stays `never`. A caller spends the reserve on reporting why it was too late.
inline Deadline without_reserve(Deadline deadline, std::chrono::nanoseconds most) {
  if (deadline.is_never()) return deadline;
  const std::chrono::nanoseconds left = deadline.remaining();
  return Deadline::after(left - std::min(left / 4, most));
}

}  // namespace tutti
