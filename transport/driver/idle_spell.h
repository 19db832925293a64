#pragma once

#include <algorithm>
#include <chrono>

#include <sched.h>

#include <tutti/deadline.h>

#include "core/relax.h"
#include "transport/driver/spin_policy.h"

namespace tutti {

// An `IdleSpell` is a time during which a driving thread finds nothing to do. The thread first spins, then
// yields the processor, and finally should sleep. Each spell starts with spinning again.
class IdleSpell {
 public:
  using Time = Deadline::Clock::time_point;

  // `spin` and `yield` say how long each phase may last, and learn from the outcome. `crowded` is kept from
  // spell to spell: it says whether other threads wanted this processor.
  IdleSpell(SpinPolicy& spin, SpinPolicy& yield, bool& crowded)
      : spin_policy_(spin), yield_policy_(yield), crowded_(crowded) {}

  bool has_begun() const { return begun_; }
  bool is_spinning() const { return begun_ && spin_.count() > 0 && !yielding_; }
  // Returns whether the thread still spins without yielding the processor.
  bool is_alone() const { return begun_ && alone_; }

  void begin(Time now) {
    begun_ = true;
    yielding_ = false;
    since_ = now;
    spin_ = spin_policy_.begin();
  }
  // Ends the spell, because there is something to do.
  void end() {
    if (is_spinning()) {
      spin_policy_.end(true, Deadline::Clock::now() - since_);
    } else if (begun_ && yielding_ && yield_.count() > 0) {
      yield_policy_.end(true, Deadline::Clock::now() - since_ - spin_);
    }
    begun_ = false;
  }
  // Spins or yields once. Returns false if the spell has ended and the thread should sleep.
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
  // A peer that runs on another processor answers within this time. After that, the thread yields at every
  // pass, since the peer may be waiting for this processor.
  static constexpr std::chrono::nanoseconds spin_alone = std::chrono::microseconds(5);
  // If a yield took less than this, no other thread has run.
  static constexpr std::chrono::nanoseconds unused_offer = std::chrono::microseconds(3);

  // Yields the processor. Returns whether another thread ran. If so, this thread should sleep. Two threads
  // that stay awake may share one processor for many milliseconds. But a thread that sleeps may be moved to
  // an idle processor when it is woken.
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
  std::chrono::nanoseconds spin_{0};  // how long this spell may spin
  std::chrono::nanoseconds yield_{0};
  bool begun_ = false;
  bool alone_ = false;
  bool yielding_ = false;
};

}  // namespace tutti
