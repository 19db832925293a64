#pragma once

#include <algorithm>
#include <chrono>

namespace tutti {

// A `Deadline` is a point on the monotonic clock by which a call must return. A timeout becomes a `Deadline`
// once, where a call enters the library, and is passed down unchanged: it limits the whole call, not each
// step.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline never() { return Deadline(Clock::time_point::max()); }
  static Deadline at(Clock::time_point when) { return Deadline(when); }
  // A duration that is too long for the clock gives `never`; a negative one gives an expired deadline.
  static Deadline after(std::chrono::nanoseconds timeout) { return after(timeout, Clock::now()); }
  // Does the same for a caller that has read the clock already.
  static Deadline after(std::chrono::nanoseconds timeout, Clock::time_point now) {
    return timeout >= Clock::time_point::max() - now ? never() : Deadline(now + timeout);
  }

  bool is_never() const { return when_ == Clock::time_point::max(); }
  bool expired() const { return !is_never() && Clock::now() >= when_; }
  Clock::time_point when() const { return when_; }
  // Returns the time that is left: zero if expired, a year if `never`.
  std::chrono::nanoseconds remaining() const {
    if (is_never()) return std::chrono::hours(24 * 365);
    return std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(when_ - Clock::now()));
  }
  friend Deadline earlier(Deadline a, Deadline b) { return a.when_ < b.when_ ? a : b; }

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

}  // namespace tutti
