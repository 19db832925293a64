#pragma once

#include <map>

#include <tutti/deadline.h>

namespace tutti {

class Timer;

// `Timers` keeps the moments that things wait for: a hello, an answer, the next try. Never on the data path.
class Timers {
 public:
  // Replaces the moment that was set before.
  void set(Timer& timer, Deadline when);
  void cancel(Timer& timer);
  // Calls each timer that is due once. Timers may set and cancel any timer. Returns whether any was due.
  bool run();
  Deadline next() const;

 private:
  std::multimap<Deadline::Clock::time_point, Timer*> queue_;
};

// A `Timer` is called when it is due.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual void on_timer() = 0;
};

}  // namespace tutti
