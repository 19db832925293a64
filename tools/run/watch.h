#pragma once

#include <chrono>

#include <tutti/deadline.h>

#include "core/descriptor.h"

namespace tutti::tools {

// A `Watch` is a pipe through which a process shows the one that waits for it that it is not stuck. Make it
// before the fork.
class Watch {
 public:
  // Until the first sign, the process may take as long as `patience`. Throws std::system_error if there is no
  // pipe to be had.
  explicit Watch(std::chrono::nanoseconds patience);

  // For the watched process: gives a sign of life. The next one must follow within `patience`.
  void give_sign(std::chrono::nanoseconds patience);
  // For the process that waits: returns whether the other has given no sign for too long.
  bool is_overdue();

 private:
  Descriptor signs_;  // each sign is the time until the next one at most
  Descriptor giver_;
  std::chrono::nanoseconds patience_;
  Deadline::Clock::time_point heard_;
};

}  // namespace tutti::tools
