#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "collectives/group/failure.h"
#include "collectives/group/members.h"
#include "collectives/run/allocation.h"
#include "collectives/run/board.h"
#include "control/desk.h"
#include "transport/driver/driver.h"
#include "transport/mesh/mesh.h"
#include "transport/shared_segment.h"

namespace tutti {

// `SegmentSharing` lets a communicator's members share memory: the board of their collectives, and the memory
// that users allocate.
class SegmentSharing {
 public:
  // `events` learns of members that die while they hold a segment.
  SegmentSharing(std::uint32_t context, const Members& members, Mesh& mesh, ControlDesk& desk,
                 Failure& failure, SharedSegmentEvents& events);

  // --- threads that do not drive; all members call these in the same order ---

  // Returns a board with windows of `window_bytes`; null if the members do not share memory. Must be called
  // before any operation is issued.
  std::unique_ptr<Board> make_board(std::uint64_t window_bytes, Deadline deadline);
  // See Communicator::allocate.
  std::shared_ptr<GroupMemory> allocate(const std::vector<std::uint64_t>& parts, Deadline deadline);

  // --- any thread ---

  // Lets all members drop the allocations that all have released.
  void tell_unused();

  // --- driving ---

  const AllocationTable& allocations() const { return allocations_; }
  void drop_unused() { allocations_.drop_unused(); }
  // Ends pending attempts to share.
  void cancel(const Status& why);
  // Drops all allocations.
  void clear() { allocations_.clear(); }

 private:
  Result<std::unique_ptr<SharedSegment>> share(std::uint64_t bytes, Deadline deadline);

  const std::uint32_t context_;
  const Members& members_;
  Mesh& mesh_;
  Driver& driver_;
  ControlDesk& desk_;
  Failure& failure_;
  SharedSegmentEvents& events_;
  bool has_board_ = false;
  std::uint32_t asked_for_ = 0;          // the number of segments that this rank has asked for
  std::vector<ShareRequest*> requests_;  // the requests that a thread waits for; driving
  AllocationTable allocations_;
};

}  // namespace tutti
