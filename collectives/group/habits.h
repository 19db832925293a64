#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include <tutti/communicator.h>

#include "collectives/arguments.h"
#include "collectives/group/gate.h"
#include "collectives/group/journal.h"
#include "collectives/group/live_operations.h"
#include "collectives/group/members.h"
#include "collectives/group/operation.h"
#include "collectives/group/shared_collectives.h"
#include "collectives/run/schedule_cache.h"
#include "collectives/schedule/problem.h"
#include "core/thread_annotations.h"
#include "transport/mesh/mesh.h"

namespace tutti {

// `Habits` are what is known of the last small collective of each kind over shared memory, so that the next
// one costs little: it is carried out in passing. If it is over when the call returns, `work` is left as it
// was (a default one is done), no clock was read, and nothing was allocated.
//
// Any thread may call.
class Habits {
 public:
  // `owner` carries on with what is not over at once.
  Habits(std::uint32_t context, const Members& members, Mesh& mesh, Journal& journal, LiveOperations& live,
         SharedCollectives& shared, Gate& gate, OperationOwner& owner);
  ~Habits();
  Habits(const Habits&) = delete;
  Habits& operator=(const Habits&) = delete;

  // Carries out a call that is equal to the last one of its kind, down to the pointers: then nothing need be
  // checked anew. False if it is another one.
  bool repeat(const Call& call, const CallOptions& options, Work& work);
  // Carries out a call that has been checked, if it is of the same problem as the last one of its kind.
  bool attempt(const Call& call, const Problem& problem, const Fingerprint& print, const CallOptions& options,
               Work& work);
  // The next call of that kind may be like this one.
  void form(const Operation& operation, const Problem& problem);

 private:
  struct Habit {
    Problem problem;
    std::shared_ptr<CachedSchedule> schedule;  // null: nothing is known yet
    Call call;                                 // that `operation` has been bound to
    Operation* operation = nullptr;            // ready for the next time; null: must be made anew
  };
  Habit& of(CollectiveKind kind) { return habits_[static_cast<std::size_t>(kind)]; }
  bool enter_for(const Habit& habit, const CallOptions& options) TUTTI_TRY_ACQUIRE(true, gate_);
  void bind(Habit& habit, const Call& call, const Fingerprint& print);
  void carry_out(Habit& habit, const CallOptions& options, Work& work);
  void keep(Habit& habit, const CallOptions& options, Work& work);
  static void drop(Habit& habit);

  const std::uint32_t context_;
  const Members& members_;
  Mesh& mesh_;
  Journal& journal_;
  LiveOperations& live_;
  SharedCollectives& shared_;
  Gate& gate_;
  OperationOwner& owner_;
  std::array<Habit, static_cast<std::size_t>(collective_kind_count)> habits_;  // driving
};

}  // namespace tutti
