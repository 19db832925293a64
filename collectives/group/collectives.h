#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tutti/communicator.h>

#include "collectives/arguments.h"
#include "collectives/group/arbitration.h"
#include "collectives/group/failure.h"
#include "collectives/group/gate.h"
#include "collectives/group/habits.h"
#include "collectives/group/journal.h"
#include "collectives/group/live_operations.h"
#include "collectives/group/members.h"
#include "collectives/group/operation.h"
#include "collectives/group/shared_collectives.h"
#include "collectives/group/world.h"
#include "collectives/run/schedule_cache.h"
#include "collectives/schedule/problem.h"
#include "collectives/schedule/registered.h"

namespace tutti {

// `Collectives` issues a communicator's collectives and carries them out, by messages or over shared memory.
class Collectives final : public OperationOwner {
 public:
  // `registry`: memory that all members can reach.
  Collectives(std::uint32_t context, World& world, const Members& members, Failure& failure, Journal& journal,
              LiveOperations& live, SharedCollectives& shared, const Registry& registry, Gate& gate,
              Arbitration& arbitration);

  // Any thread: issues a call that has been checked. `problem` and `print` were made of it.
  Work issue(const Call& call, const Problem& problem, const Fingerprint& print, const CallOptions& options);
  // Any thread; see Habits.
  bool repeat(const Call& call, const CallOptions& options, Work& work) {
    return habits_.repeat(call, options, work);
  }

  // OperationOwner
  void start(Operation& operation) override;
  void on_part_over(Operation& operation, const Status& status) override;
  void cancel(Operation& operation, const Status& why) override;
  std::vector<int> awaited(const Operation& operation) const override;
  std::string name_awaited(const Operation& operation) const override;

 private:
  const std::uint32_t context_;
  const Composite part_of_;  // what all calls are part of
  const Members& members_;
  Mesh& mesh_;
  Failure& failure_;
  Journal& journal_;
  LiveOperations& live_;
  SharedCollectives& shared_;
  const Registry& registry_;
  Gate& gate_;
  Arbitration& arbitration_;
  ScheduleCache cache_;
  Habits habits_;
};

}  // namespace tutti
