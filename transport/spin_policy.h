#pragma once

#include <chrono>
#include <cstdint>

namespace tutti {

// Whether spinning pays. A waiter that spins answers fastest where it has a processor to itself; where others
// want that processor, one of them perhaps the peer that it waits for, it loses its time slice, and
// milliseconds. The kernel counts how often this thread was switched away from against its will (or offered
// the processor and was taken at its word): when that has happened, spinning stops for a number of waits, and
// for four times as many each time it happens again. Used by whoever drives.
class SpinPolicy {
 public:
  explicit SpinPolicy(std::chrono::nanoseconds longest) : longest_(longest) {}

  // How long this wait may spin.
  std::chrono::nanoseconds begin() {
    if (skip_ == 0) return longest_;
    --skip_;
    return std::chrono::nanoseconds(0);
  }
  // A wait that spun is over; `found`: there was something to do in time.
  void end(bool found);

 private:
  std::chrono::nanoseconds longest_;
  std::uint32_t skip_ = 0;
  std::uint32_t penalty_ = 0;
  std::uint32_t found_ = 0;
};

}  // namespace tutti
