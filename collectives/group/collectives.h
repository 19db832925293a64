#pragma once

#include <string>
#include <vector>

#include <tutti/communicator.h>

#include "collectives/arguments.h"
#include "collectives/group/arbitration.h"
#include "collectives/group/habits.h"
#include "collectives/group/offloaded_collectives.h"
#include "collectives/group/offloading.h"
#include "collectives/group/operation.h"
#include "collectives/group/parts.h"
#include "collectives/run/schedule_cache.h"
#include "collectives/schedule/problem.h"
#include "collectives/schedule/registered.h"
#include "collectives/schedule/selector.h"
#include "core/fingerprint.h"

namespace tutti {

// `Collectives` issues a communicator's collectives and carries them out, by messages or over shared memory.
class Collectives final : public OperationOwner {
 public:
  // `registry` knows the memory that all members can access.
  Collectives(const Parts& parts, const Selector& selector, const Registry& registry,
              Arbitration& arbitration, Offloading& offloading);

  // Checks a call and issues it. Any thread may call.
  Work issue(const Call& call, const CallOptions& options);
  // See Habits. Any thread may call.
  bool repeat(const Call& call, const CallOptions& options, Work& work) {
    return habits_.repeat(call, options, work);
  }

  // Forgets the last call of each kind, so that the next call of each kind is checked and issued in full.
  void forget_habits() { habits_.forget(); }

  // These functions implement OperationOwner.
  void start(Operation& operation) override;
  void on_failed(Operation& operation, const Status& why) override;
  void on_finished(Operation& operation, const Status& status) override;

 private:
  Work issue_checked(const Call& call, const Problem& problem, const Fingerprint& print,
                     const CallOptions& options);
  // Issues a call that has device memory or options other than a time limit, or that a library may carry out.
  Work issue_specially(const Call& call, const Problem& problem, Fingerprint print,
                       const CallOptions& options);

  const Parts parts_;
  const Registry& registry_;
  Arbitration& arbitration_;
  Offloading& offloading_;
  ScheduleCache cache_;
  Habits habits_;
  OffloadedCollectives offloaded_;
};

}  // namespace tutti
