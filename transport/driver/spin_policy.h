#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tutti {

// A `SpinPolicy` decides whether spinning, or yielding, is worthwhile. If a waiter has a processor to itself,
// it reacts fastest by spinning. If other threads want that processor (one of them may be the peer), the
// waiter loses its time slice, which costs milliseconds. If answers take long, spinning wastes processor
// time. So the policy learns from earlier waits. After a lost time slice, or after several waits that spun
// without success, the next waits sleep without spinning. If one of these two things soon happens again,
// twice as many waits sleep as before.
//
// A thread that yields without success wastes nothing, so a policy for yielding does not count such waits
// (`InVain::is_fine`). But a yield may also cost a time slice, if another process on the processor never
// yields. In that case a thread that sleeps and is woken gets the processor back sooner than a thread that
// yields.
//
// Only the driving thread may use it.
class SpinPolicy {
 public:
  enum class InVain : std::uint8_t { counts, is_fine };

  explicit SpinPolicy(std::chrono::nanoseconds longest, InVain in_vain = InVain::counts)
      : longest_(longest), most_in_vain_(in_vain == InVain::counts ? 3 : 0) {}

  // Begins a wait, and returns how long it may spin.
  std::chrono::nanoseconds begin() {
    if (skip_ == 0) return longest_;
    --skip_;
    return std::chrono::nanoseconds(0);
  }
  // Ends a wait that spun for `took`. `found` tells whether the thread found something to do while it spun.
  void end(bool found, std::chrono::nanoseconds took) {
    // A thread spins this much longer than allowed only if the processor was taken from it.
    const bool lost_slice = took > 2 * longest_ + std::chrono::milliseconds(1);
    if (found && !lost_slice) {
      in_vain_ = 0;
      penalty_ -= (penalty_ + 63) / 64;
    } else if (lost_slice || ++in_vain_ == most_in_vain_) {
      in_vain_ = 0;
      const std::uint32_t least = lost_slice ? after_lost_slice : after_vain_spins;
      penalty_ = std::clamp(2 * penalty_, least, longest_penalty);
      skip_ = penalty_;
    }
  }

 private:
  static constexpr std::uint32_t after_vain_spins = 8;
  // This many sleeps cost about as much as a lost time slice.
  static constexpr std::uint32_t after_lost_slice = 64;
  static constexpr std::uint32_t longest_penalty = 4096;

  std::chrono::nanoseconds longest_;
  std::uint32_t most_in_vain_;
  std::uint32_t skip_ = 0;
  std::uint32_t penalty_ = 0;
  std::uint32_t in_vain_ = 0;
};

}  // namespace tutti
