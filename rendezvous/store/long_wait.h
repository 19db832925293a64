#pragma once

#include <chrono>
#include <string>

#include <tutti/config_values.h>
#include <tutti/deadline.h>

namespace tutti {

// `LongWait` says when a long wait is worth a line in the log: after ten seconds, and then at ever longer
// intervals.
class LongWait {
 public:
  // Returns true whenever the next line is due.
  bool is_due() {
    if (Deadline::Clock::now() < next_) return false;
    next_ = start_ + 4 * (Deadline::Clock::now() - start_);
    return true;
  }
  Deadline next() const { return Deadline::at(next_); }
  std::string waited() const {
    return format_duration(std::chrono::round<std::chrono::seconds>(Deadline::Clock::now() - start_));
  }

 private:
  const Deadline::Clock::time_point start_ = Deadline::Clock::now();
  Deadline::Clock::time_point next_ = start_ + std::chrono::seconds(10);
};

}  // namespace tutti
