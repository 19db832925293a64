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

// `Habits` remembers the last small shared-memory collective of each kind, so that an equal call costs
// little: the operation runs inside the call. An operation that completes before the call returns leaves
// `work` unchanged, since a default `Work` counts as done. An equal call allocates no memory, and in most
// cases reads no clock.
//
// Any thread may call, except for `forget`.
class Habits {
 public:
  // `owner` continues operations that do not complete at once.
  Habits(const Parts& parts, OperationOwner& owner);
  ~Habits();
  Habits(const Habits&) = delete;
  Habits& operator=(const Habits&) = delete;

  // Runs a call that equals the last call of its kind, including the pointers. Such a call need not be
  // checked again. Returns false if the call differs, or cannot start at once.
  bool repeat(const Call& call, const CallOptions& options, Work& work);
  // Runs a call that has been checked, if its problem equals the problem of the last call of its kind and the
  // call can start at once. Otherwise returns false.
  bool attempt(const Call& call, const Problem& problem, const Fingerprint& print, const CallOptions& options,
               Work& work);
  // Remembers an operation, since the next call of its kind may equal it.
  void form(const Operation& operation, const Problem& problem);
  // Forgets all calls. Only the driving thread may call it.
  void forget();

 private:
  struct Habit {
    Problem problem;
    std::shared_ptr<CachedSchedule> schedule;  // null: no call is remembered
    Call call;                                 // the call that `operation` is bound to
    Operation* operation = nullptr;            // prepared for the next call; null: `bind` makes one
  };
  Habit& of(CollectiveKind kind) { return habits_[static_cast<std::size_t>(kind)]; }
  bool enter_for(const Habit& habit, const CallOptions& options) TUTTI_TRY_ACQUIRE(true, parts_.gate);
  void bind(Habit& habit, const Call& call, const Fingerprint& print);
  void carry_out(Habit& habit, const CallOptions& options, Work& work);
  void keep(Habit& habit, const CallOptions& options, Work& work);
  static void drop(Habit& habit);

  const Parts parts_;
  OperationOwner& owner_;
  // Only the driving thread uses these.
  std::array<Habit, static_cast<std::size_t>(collective_kind_count)> habits_;
};

}  // namespace tutti
