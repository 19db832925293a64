#pragma once

#include <array>
#include <memory>

#include <tutti/communicator.h>

#include "collectives/arguments.h"
#include "collectives/group/operation.h"
#include "collectives/group/parts.h"
#include "collectives/run/schedule_cache.h"
#include "collectives/schedule/problem.h"
#include "core/thread_annotations.h"

namespace tutti {

// `Habits` remember the last small collective of each kind over shared memory, so that the next one costs
// little: it is carried out "in passing", without an operation of its own. If it is over when the call
// returns, `work` is left as it was (a default one is done), no clock was read, and nothing was allocated.
//
// Any thread may call.
class Habits {
 public:
  // `owner` carries on with operations that are not over at once.
  Habits(const Parts& parts, OperationOwner& owner);
  ~Habits();
  Habits(const Habits&) = delete;
  Habits& operator=(const Habits&) = delete;

  // Carries out a call that is the same as the last one of its kind, down to the pointers, so that nothing
  // need be checked again. Returns false for any other call.
  bool repeat(const Call& call, const CallOptions& options, Work& work);
  // Carries out a call that has been checked, if its problem is that of the last call of its kind.
  bool attempt(const Call& call, const Problem& problem, const Fingerprint& print, const CallOptions& options,
               Work& work);
  // Remembers an operation: the next call of its kind may be like it.
  void form(const Operation& operation, const Problem& problem);

 private:
  struct Habit {
    Problem problem;
    std::shared_ptr<CachedSchedule> schedule;  // null: nothing is known yet
    Call call;                                 // that `operation` has been bound to
    Operation* operation = nullptr;            // ready for the next time; null: must be made again
  };
  Habit& of(CollectiveKind kind) { return habits_[static_cast<std::size_t>(kind)]; }
  bool enter_for(const Habit& habit, const CallOptions& options) TUTTI_TRY_ACQUIRE(true, parts_.gate);
  void bind(Habit& habit, const Call& call, const Fingerprint& print);
  void carry_out(Habit& habit, const CallOptions& options, Work& work);
  void keep(Habit& habit, const CallOptions& options, Work& work);
  static void drop(Habit& habit);

  const Parts parts_;
  OperationOwner& owner_;
  std::array<Habit, static_cast<std::size_t>(collective_kind_count)> habits_;  // driving
};

}  // namespace tutti
