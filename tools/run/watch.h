#pragma once

#include <chrono>

#include <tutti/deadline.h>

#include "core/descriptor.h"

namespace tutti::tools {

// A `Watch` is a pipe through which a child process shows its parent that it is not stuck. Make it
// before the fork.
class Watch {
 public:
  // The first sign must come within `patience`. Throws std::system_error if no pipe can be made.
  explicit Watch(std::chrono::nanoseconds patience);

  // The watched process calls this to give a sign of life. The next sign must follow within
  // `patience`.
  void give_sign(std::chrono::nanoseconds patience);
  // The waiting process calls this. Returns true if the watched process has not given a sign in
  // time.
  bool is_overdue();

 private:
  Descriptor signs_;  // each sign contains the longest time until the next sign
  Descriptor giver_;
  std::chrono::nanoseconds patience_;
  Deadline::Clock::time_point heard_;
};

}  // namespace tutti::tools
