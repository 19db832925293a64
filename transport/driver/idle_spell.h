#pragma once

#include <algorithm>
#include <chrono>

#include <sched.h>

#include <tutti/deadline.h>

#include "core/relax.h"
#include "transport/driver/spin_policy.h"

namespace tutti {

// `IdleSpell` is the time in which a driving thread finds nothing to do: it spins, then it offers the
// processor to other threads, and then it is better to sleep. Each spell starts again.
class IdleSpell {
 public:
  using Time = Deadline::Clock::time_point;

  // `spin` and `yield` say how long each may last, and learn from it. `crowded`: others wanted this
  // processor.
  IdleSpell(SpinPolicy& spin, SpinPolicy& yield, bool& crowded)
      : spin_policy_(spin), yield_policy_(yield), crowded_(crowded) {}

  bool has_begun() const { return begun_; }
  bool is_spinning() const { return begun_ && spin_.count() > 0 && !yielding_; }
  // Returns whether it spins and does not offer the processor to other threads yet.
  bool is_alone() const { return begun_ && alone_; }

  void begin(Time now) {
    begun_ = true;
    yielding_ = false;
    since_ = now;
    spin_ = spin_policy_.begin();
  }
  // There is something to do.
  void end() {
    if (is_spinning()) {
      spin_policy_.end(true, Deadline::Clock::now() - since_);
    } else if (begun_ && yielding_ && yield_.count() > 0) {
      yield_policy_.end(true, Deadline::Clock::now() - since_ - spin_);
    }
    begun_ = false;
  }
  // Spins once, or offers the processor once; false if the spell is over and the thread is to sleep.
  bool pass_time(Time now) {
    const auto waited = now - since_;
    alone_ = !crowded_ && waited < std::min(spin_, spin_alone);
    if (alone_) {
      relax();
    } else if (!crowded_ && waited < spin_) {
      crowded_ = others_ran_meanwhile(now);
    } else if (!crowded_ && (!yielding_ || waited < spin_ + yield_)) {
      offer_processor();
    } else {
      give_up(waited);
      return false;
    }
    return true;
  }

 private:
  // A peer that has a processor of its own answers within this. Later the processor is offered to others at
  // every pass: the peer may wait for this very one.
  static constexpr std::chrono::nanoseconds spin_alone = std::chrono::microseconds(5);
  // No other thread ran during an offer that took less.
  static constexpr std::chrono::nanoseconds unused_offer = std::chrono::microseconds(3);

  // Offers the processor to other threads and returns true if one of them took it. Then it is better to
  // sleep: two threads that want the same processor stay there for many milliseconds, but one that is woken
  // may be put on an idle one.
  static bool others_ran_meanwhile(Time now) {
    sched_yield();
    return Deadline::Clock::now() - now > unused_offer;
  }
  void offer_processor() {
    if (!yielding_) yield_ = yield_policy_.begin();
    yielding_ = true;
    if (yield_.count() > 0) sched_yield();
  }
  void give_up(std::chrono::nanoseconds waited) {
    if (spin_.count() > 0 && !crowded_) spin_policy_.end(false, waited);
    if (yielding_ && yield_.count() > 0) yield_policy_.end(false, waited - spin_);
    crowded_ = false;
    begun_ = false;
  }

  SpinPolicy& spin_policy_;
  SpinPolicy& yield_policy_;
  bool& crowded_;
  Time since_;
  std::chrono::nanoseconds spin_{0};  // in this spell
  std::chrono::nanoseconds yield_{0};
  bool begun_ = false;
  bool alone_ = false;
  bool yielding_ = false;
};

}  // namespace tutti
