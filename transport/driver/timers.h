#pragma once

#include <map>

#include <tutti/deadline.h>

namespace tutti {

class Timer;

// `Timers` keeps the times at which timers are due, such as the limit of a hello or the next try. The data
// path never uses them.
class Timers {
 public:
  // Replaces the time that was set before.
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
