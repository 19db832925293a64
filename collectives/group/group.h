#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tutti/communicator.h>

#include "collectives/arguments.h"
#include "collectives/group/active_groups.h"
#include "collectives/group/arbitration.h"
#include "collectives/group/collectives.h"
#include "collectives/group/failure.h"
#include "collectives/group/gate.h"
#include "collectives/group/journal.h"
#include "collectives/group/live_operations.h"
#include "collectives/group/members.h"
#include "collectives/group/offloading.h"
#include "collectives/group/operation.h"
#include "collectives/group/parts.h"
#include "collectives/group/point_to_point.h"
#include "collectives/group/segment_sharing.h"
#include "collectives/group/shared_collectives.h"
#include "collectives/group/survivors.h"
#include "collectives/group/watchdog.h"
#include "collectives/group/world.h"
#include "collectives/record/history.h"
#include "collectives/record/recorder.h"
#include "collectives/run/allocation.h"
#include "collectives/schedule/problem.h"
#include "collectives/schedule/topology.h"
#include "control/client.h"
#include "control/notes.h"
#include "transport/mesh/mesh.h"

namespace tutti {

// `Group` implements a communicator. It combines the parts that other files of this folder define, and passes
// events of the mesh, the control plane and the driver to these parts.
//
// Any thread may issue operations. Only the driving thread calls the functions marked "driving".
class Group final : public ContextEvents,
                    public ControlClient,
                    public ActiveGroups::Member,
                    public Recorded,
                    private SharedSegmentEvents,
                    private Failure::Actor {
 public:
  // `ranks` are the world ranks of the members, in the order of their ranks in this communicator.
  Group(std::shared_ptr<World> world, std::uint32_t context, std::vector<int> ranks);
  ~Group() override;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  std::uint32_t context() const override { return context_; }
  int rank() const override { return members_.rank(); }
  int size() const { return members_.size(); }
  World& world() { return *world_; }
  const std::shared_ptr<World>& shared_world() const { return world_; }
  const std::vector<int>& ranks() const override { return members_.world_ranks(); }
  const Topology& topology() const { return members_.topology(); }

  // See Collectives.
  Work collective(const Call& call, const CallOptions& options) { return collectives_.issue(call, options); }
  // See Habits.
  bool repeat(const Call& call, const CallOptions& options, Work& work) {
    return collectives_.repeat(call, options, work);
  }
  // See PointToPoint.
  Work transfers(std::span<const Transfer> legs, const CallOptions& options) {
    return point_to_point_.issue(legs, options);
  }

  // See PointToPoint.
  Work own_transfers(std::span<const Transfer> legs, Composite part_of, const CallOptions& options) {
    return point_to_point_.issue_own(legs, part_of, options);
  }

  // Opens the memory that the ranks of each host share. If all ranks are on one host, their collectives use
  // it from now on. Every rank of a world must call this on the communicator that `init` returns, before any
  // operation is issued there. The calling thread must not drive.
  void open_host_memory(Deadline deadline);
  // From now on, the members' collectives use the range of their host's memory at `place`. All members must
  // call this before they issue any operation. Throws `Error` if no range can lie at `place`.
  void use_range(std::uint64_t place);
  // See Communicator::allocate.
  std::shared_ptr<GroupMemory> allocate(const std::vector<std::uint64_t>& parts);
  // Registers a region with every transport and every offload that can use it.
  Result<std::vector<std::unique_ptr<RegisteredMemory>>> add_memory(std::span<std::byte> region);
  // Lets all members unmap the memory that all of them have released. Any thread may call.
  void tell_memory_unused() { sharing_.tell_unused(); }

  void abort(const Status& why) { gate_.abort(why); }
  // See Survivors. The calling thread must not drive.
  ShrinkNote agree_to_shrink(int min_size) { return survivors_.agree(min_size); }
  Status status() const override { return failure_.status(); }
  std::uint64_t operations_issued() const { return journal_.operations_issued(); }
  // Only the driving thread may call this.
  std::uint64_t registered_operations() const {
    const SharedExecutor* const executor = shared_.executor();
    return executor == nullptr ? 0 : executor->registered_operations();
  }
  std::string describe(int rank) const { return members_.describe(rank); }

  // These functions implement Recorded.
  std::uint64_t collectives_issued() const override { return journal_.next_collective(); }
  const History& collectives() const override { return journal_.collectives(); }
  const History& transfers() const override { return journal_.transfers(); }
  std::vector<Waiting> waiting() const override;

  // These driving functions implement ActiveGroups::Member.
  bool poll() override;
  bool expects_memory() const override { return shared_.expects_memory(); }
  bool prepare_sleep() override;
  void cancel_sleep() override { shared_.cancel_sleep(); }
  Deadline next_deadline() const override;

  // These driving functions implement ControlClient.
  void fail(const Status& why) override;
  void act_on_failure() override { failure_.act(); }
  void on_loss() override;
  void on_leave() override;
  void on_note(const ControlNote& note) override;

  // These driving functions implement ContextEvents.
  Known operation(std::uint64_t sequence) const override { return journal_.find(sequence); }
  std::string describe(const Fingerprint& call) const override;
  void on_mismatch(int peer, std::uint64_t sequence, const Fingerprint* theirs, const Status& why) override;
  void on_abort(int peer, const Status& why) override;
  void on_peer_down(int peer, const Status& why) override;

 private:
  // This driving function implements ActiveGroups::Member.
  bool rest() override;
  // This driving function implements SharedSegmentEvents.
  void on_member_lost(int member, const Status& why) override;
  // These driving functions implement Failure::Actor.
  void spread_failure(const Status& why, bool known) override;
  void end_operations(const Status& why) override;
  bool others_may_know() const override { return world_->desk.listens(); }

  void on_call_note(const ControlNote& note, const CallNote& call);
  void fail_at_the_end();

  const std::shared_ptr<World> world_;
  Driver& driver_;
  const std::uint32_t context_;
  std::uint64_t issued_ = 0;  // `operations_issued()` when `rest` was last called
  const Members members_;
  Failure failure_;
  Journal journal_;
  LiveOperations live_;
  SegmentSharing sharing_;
  SharedCollectives shared_;
  Gate gate_;
  Arbitration arbitration_;
  Offloading offloading_;
  const Parts parts_;
  Collectives collectives_;
  PointToPoint point_to_point_;
  Watchdog watchdog_;
  Survivors survivors_;
};

}  // namespace tutti
