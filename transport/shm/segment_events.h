#pragma once

#include <memory>
#include <vector>

#include "transport/shared_segment.h"
#include "transport/shm/segment.h"
#include "transport/shm/shared_memory.h"

namespace tutti::shm {

// `SegmentEvents` is notified once of the outcome of a request for a shared segment. It destroys the
// `SegmentLeader` or `SegmentMember` of the request, which must do nothing after that call.
class SegmentEvents {
 public:
  virtual ~SegmentEvents() = default;
  // All members have mapped the segment.
  virtual void on_shared(ShareRequest& request, std::unique_ptr<Segment> segment,
                         std::vector<SharedMemory::Member> members) = 0;
  virtual void on_not_shared(ShareRequest& request, const Status& why) = 0;
};

}  // namespace tutti::shm
