#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "collectives/group/active_groups.h"
#include "collectives/group/failure.h"
#include "collectives/group/host_memory.h"
#include "collectives/group/members.h"
#include "collectives/run/allocation.h"
#include "control/desk.h"
#include "transport/driver/driver.h"
#include "transport/mesh/mesh.h"
#include "transport/shared_segment.h"

namespace tutti {

// `SegmentSharing` asks for segments that a communicator's members share: the memory of their host, and the
// memory that users allocate.
class SegmentSharing {
 public:
  // `group` is the communicator. Its `rest` must return false as long as `is_waiting` returns true. `events`
  // learns of members that die while they hold a segment.
  SegmentSharing(std::uint32_t context, const Members& members, Mesh& mesh, ControlDesk& desk,
                 Failure& failure, ActiveGroups::Member& group, SharedSegmentEvents& events);

  // --- threads that do not drive; all members call these in the same order ---

  // Opens the host's memory, if the host's ranks can share a segment. All ranks of the world must be members
  // of this communicator. See HostMemory::prepare for the other arguments.
  void open(HostMemory& memory, std::vector<int> on_this_host, std::uint64_t first_bytes, std::uint64_t room,
            Deadline deadline);
  // See Communicator::allocate. `shares` must be equal on all members. If it is false, the memory is not
  // shared.
  std::shared_ptr<GroupMemory> allocate(const std::vector<std::uint64_t>& parts, bool shares,
                                        Deadline deadline);

  // --- any thread ---

  // Lets all members drop the allocations that all of them have released.
  void tell_unused();

  // --- driving ---

  const AllocationTable& allocations() const { return allocations_; }
  void drop_unused() { allocations_.drop_unused(); }
  // Returns whether a thread waits for the members to share a segment. During this wait the communicator must
  // read the board, because another member may report a failure there.
  bool is_waiting() const { return !requests_.empty(); }
  // Ends pending attempts to share.
  void cancel(const Status& why);
  // Drops all allocations.
  void clear() { allocations_.clear(); }

 private:
  struct Sharing;
  Result<std::unique_ptr<SharedSegment>> share(Sharing& sharing);

  const std::uint32_t context_;
  const Members& members_;
  Mesh& mesh_;
  Driver& driver_;
  ControlDesk& desk_;
  Failure& failure_;
  ActiveGroups::Member& group_;
  SharedSegmentEvents& events_;
  std::uint32_t asked_for_ = 0;          // the number of segments that this rank has asked for
  std::vector<ShareRequest*> requests_;  // requests that a thread waits for; only the driving
                                         // thread uses them
  AllocationTable allocations_;
};

}  // namespace tutti
