#pragma once

#include <map>

#include <tutti/deadline.h>

namespace tutti {

class Timer;

// `Timers` calls each `Timer` when its time has come. Transports use it to limit the wait for a peer's hello
// or answer, and to delay the next connection attempt. The data path does not use timers.
class Timers {
 public:
  // Sets the time of a timer. It replaces the time that was set before.
  void set(Timer& timer, Deadline when);
  void cancel(Timer& timer);
  // Calls each timer that is due, once. A timer that is called may set and cancel any timer. Returns whether
  // any timer was due.
  bool run() { return !queue_.empty() && run(Deadline::Clock::now()); }
  // Calls each timer that is due at the time `now`, for a caller that has already read the clock.
  bool run(Deadline::Clock::time_point now);
  Deadline next() const;

 private:
  std::multimap<Deadline::Clock::time_point, Timer*> queue_;
};

// A `Timer` is called when its time has come.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual void on_timer() = 0;
};

}  // namespace tutti
