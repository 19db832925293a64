#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tutti/communicator.h>

#include "collectives/arguments.h"
#include "collectives/group/arbitration.h"
#include "collectives/group/control_notes.h"
#include "collectives/group/failure.h"
#include "collectives/group/gate.h"
#include "collectives/group/habits.h"
#include "collectives/group/journal.h"
#include "collectives/group/live_operations.h"
#include "collectives/group/members.h"
#include "collectives/group/operation.h"
#include "collectives/group/point_to_point.h"
#include "collectives/group/segment_sharing.h"
#include "collectives/group/shared_collectives.h"
#include "collectives/group/shrinking.h"
#include "collectives/group/survivors.h"
#include "collectives/group/watchdog.h"
#include "collectives/group/world.h"
#include "collectives/record/history.h"
#include "collectives/record/trace.h"
#include "collectives/run/allocation.h"
#include "collectives/run/schedule_cache.h"
#include "collectives/schedule/problem.h"
#include "collectives/schedule/topology.h"
#include "control/plane.h"
#include "core/thread_annotations.h"
#include "transport/mesh/mesh.h"

namespace tutti {

// A communicator's inside: numbers operations, starts them, watches over them, fails them together.
//
// Issuing is for any thread; everything marked "driving" is for whoever drives.
class Group final : public ContextEvents,
                    public Pollable,
                    private SharedSegmentEvents,
                    private Failure::Actor,
                    private OperationOwner {
 public:
  // `ranks`: world rank of each member, in order of their rank here.
  Group(std::shared_ptr<World> world, std::uint32_t context, std::vector<int> ranks);
  ~Group() override;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  std::uint32_t context() const { return context_; }
  int rank() const { return members_.rank(); }
  int size() const { return members_.size(); }
  World& world() { return *world_; }
  const std::shared_ptr<World>& shared_world() const { return world_; }
  const std::vector<int>& ranks() const { return members_.world_ranks(); }
  const Topology& topology() const { return members_.topology(); }

  // Arguments have been checked; `problem` is filled from them.
  Work collective(const Call& call, const CollectiveArgs& args, const Problem& problem,
                  const CallOptions& options);
  // The same for a call that is equal to the last one of its kind, down to the pointers, and small: then
  // nothing need be checked anew. False if it is not for that.
  bool repeat(const Call& call, const CallOptions& options, Work& work) {
    return habits_.repeat(call, options, work);
  }
  Work transfers(CollectiveKind kind, std::span<const Transfer> legs, const CallOptions& options);
  // A handle to an operation that has failed already.
  Work refuse(const Fingerprint& call, const Status& why);

  // Lets the members share memory, if they can, in windows of at least so many bytes: collective, before
  // anything else is issued. By a thread that does not drive.
  void share_windows(std::uint64_t wanted_bytes, Deadline deadline);
  // See Communicator::allocate.
  std::shared_ptr<GroupMemory> allocate(const std::vector<std::uint64_t>& parts);
  // Lets all members drop what all have released. Any thread.
  void tell_memory_unused() { sharing_.tell_unused(); }

  void abort(const Status& why) { gate_.abort(why); }
  // Driving: fails it for a reason that the control plane has told or is telling all members.
  void fail(const Status& why);
  // Driving, and not from inside a callback of the mesh: ends what is in flight if the group has failed.
  void act_on_failure() { failure_.act(); }
  // Driving: what another member writes over the control plane.
  void on_note(const ControlNote& note);
  // Driving: fails it if an operation has been waiting for a member that has left.
  void look_for_leavers() { watchdog_.look_for_leavers(); }
  // By a thread that does not drive; see Survivors.
  ShrinkNote agree_to_shrink(int min_size) { return survivors_.agree(min_size); }
  // Driving: a rank has been lost.
  void on_loss() { survivors_.on_loss(); }
  Status status() const { return failure_.status(); }
  std::uint64_t operations_issued() const { return journal_.operations_issued(); }
  // Driving.
  std::uint64_t registered_operations() const {
    const SharedExecutor* const executor = shared_.executor();
    return executor == nullptr ? 0 : executor->registered_operations();
  }
  std::string describe(int rank) const { return members_.describe(rank); }

  // For the recorder; any thread.
  std::uint64_t collectives_issued() const { return journal_.next_collective(); }
  const History& collectives() const { return journal_.collectives(); }
  const History& transfers() const { return journal_.transfers(); }
  // An operation in flight, by its number in one of the two, since when, and the world ranks that it waits
  // for.
  struct Waiting {
    Operation::Kind kind;
    std::uint64_t number;
    History::Time since;  // 0: for less than any clock was read
    std::vector<int> ranks;
  };
  // Driving.
  std::vector<Waiting> waiting() const;

  // Pollable, driving.
  bool poll() override;
  bool expects_memory() const override { return shared_.expects_memory(); }
  bool prepare_sleep() override { return shared_.prepare_sleep(); }
  void cancel_sleep() override { shared_.cancel_sleep(); }
  Deadline next_deadline() const override;

  // ContextEvents, driving.
  Known operation(std::uint64_t sequence) const override { return journal_.find(sequence); }
  std::string describe(const Fingerprint& call) const override;
  void on_mismatch(int peer, std::uint64_t sequence, const Fingerprint* theirs, const Status& why) override {
    arbitration_.on_mismatch(peer, sequence, theirs, why);
  }
  void on_abort(int peer, const Status& why) override;
  void on_peer_down(int peer, const Status& why) override;

 private:
  // SharedSegmentEvents, driving.
  void on_member_lost(int member, const Status& why) override;
  // Failure::Actor, driving.
  void spread_failure(const Status& why, bool known) override;
  void end_operations(const Status& why) override;
  bool others_may_know() const override { return world_->desk.listens(); }

  // OperationOwner of collectives, driving.
  void start(Operation& operation) override;
  void on_part_over(Operation& operation, const Status& status) override;
  void cancel(Operation& operation, const Status& why) override;
  std::vector<int> awaited(const Operation& operation) const override;
  std::string name_awaited(const Operation& operation) const override;

  void on_call_note(const ControlNote& note, const CallNote& call);
  void suspect_failure(const Status& why);

  std::shared_ptr<World> world_;
  Driver& driver_;
  Mesh& mesh_;
  const std::uint32_t context_;
  const Composite part_of_;  // what all its calls are part of
  const Members members_;
  ScheduleCache cache_;
  Failure failure_;
  Journal journal_;
  LiveOperations live_;
  SegmentSharing sharing_;
  SharedCollectives shared_;
  Gate gate_;
  Habits habits_;
  PointToPoint point_to_point_;
  Arbitration arbitration_;
  Watchdog watchdog_;
  Survivors survivors_;
};

}  // namespace tutti
