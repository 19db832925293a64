#pragma once

#include <functional>

#include <tutti/status.h>

#include "core/call.h"

namespace tutti {

// `HostCalls` issue ordinary collectives on host memory, over a private communicator of the members of a
// session (`OffloadPeers::host_calls`). All members must issue the same calls in the same order.
class HostCalls {
 public:
  // Destroys the communicator. All calls must have ended. The calling thread must not drive. The destructor
  // does not wait for other ranks.
  virtual ~HostCalls() = default;
  // Issues a call, which has no time limit. Never blocks. The counts of the call must be valid until this
  // returns, and its buffers until `done` is called. `done` is called once: usually on the driving thread,
  // but possibly before this returns. If the communicator has failed, the status is the first cause. Any
  // thread may call `issue`, but only one at a time.
  virtual void issue(const Call& call, std::function<void(const Status&)> done) = 0;
  // Makes the communicator fail with `why` on all members, and returns at once. Calls in flight end
  // soon. `why` should name the rank that is to blame. Any thread may call it.
  virtual void abort(const Status& why) = 0;
};

}  // namespace tutti
