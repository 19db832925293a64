#include "transport/driver/timers.h"

#include <algorithm>

namespace tutti {

void Timers::set(Timer& timer, Deadline when) {
  cancel(timer);
  if (!when.is_never()) queue_.emplace(when.when(), &timer);
}

void Timers::cancel(Timer& timer) {
  std::erase_if(queue_, [&timer](const auto& entry) { return entry.second == &timer; });
}

bool Timers::run(Deadline::Clock::time_point now) {
  // The loop makes at most as many calls as there are timers when it begins. Otherwise timers that are set
  // meanwhile could keep the loop going forever.
  bool any = false;
  for (std::size_t due = queue_.size(); due > 0 && !queue_.empty(); --due) {
    const auto first = queue_.begin();
    if (first->first > now) break;
    Timer* const timer = first->second;
    queue_.erase(first);
    timer->on_timer();
    any = true;
  }
  return any;
}

Deadline Timers::next() const {
  return queue_.empty() ? Deadline::never() : Deadline::at(queue_.begin()->first);
}

}  // namespace tutti
