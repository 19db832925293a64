#pragma once

#include <algorithm>
#include <chrono>

namespace tutti {

// A `Backoff` holds the pause before the next attempt. The pause doubles each time, up to a limit.
class Backoff {
 public:
  using Duration = std::chrono::milliseconds;

  constexpr Backoff(Duration first, Duration longest) : pause_(first), longest_(longest) {}

  // Returns the next pause.
  constexpr Duration pause() const { return pause_; }
  // Returns the next pause, and makes the one after it longer.
  constexpr Duration next() {
    const Duration taken = pause_;
    pause_ = std::min(2 * pause_, longest_);
    return taken;
  }

 private:
  Duration pause_;
  Duration longest_;
};

}  // namespace tutti
