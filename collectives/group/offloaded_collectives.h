#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include <tutti/communicator.h>

#include "collectives/group/offloading.h"
#include "collectives/group/operation.h"
#include "collectives/group/parts.h"
#include "collectives/run/offloaded_execution.h"
#include "collectives/run/schedule_cache.h"
#include "core/call.h"
#include "core/fingerprint.h"

namespace tutti {

// `OffloadedCollectives` issues the collectives that libraries carry out, and refuses those that
// neither a library nor tutti can carry out (docs/seams/offload.md). The arguments of all calls
// must have been checked. Any thread may call.
class OffloadedCollectives {
 public:
  // Issues an ordinary collective of the communicator.
  using Issue = std::function<Work(const Call& call, const CallOptions& options)>;

  // `owner` owns the operations.
  OffloadedCollectives(const Parts& parts, Offloading& offloading, ScheduleCache& cache,
                       OperationOwner& owner, Issue ordinary)
      : parts_(parts),
        offloading_(offloading),
        cache_(cache),
        owner_(owner),
        ordinary_(std::move(ordinary)) {}

  // Issues a call that `library` carries out. A communicator's first such call opens the library's session.
  Work issue(const Call& call, const Fingerprint& print, const CallOptions& options, Library& library);
  // Issues a call that neither a library nor tutti can carry out. The call ends with `why` once all
  // ranks have made it.
  Work refuse_together(const Call& call, const Fingerprint& print, const CallOptions& options,
                       const Status& why);

 private:
  class Peers;

  Result<Operation*> make(const Call& call, const Fingerprint& print, const CallOptions& options);
  Work issue_first(const Call& call, const Fingerprint& print, const CallOptions& options, Library& library);
  Status open(Library& library, Memory memory, Deadline deadline);

  const Parts parts_;
  Offloading& offloading_;
  ScheduleCache& cache_;
  OperationOwner& owner_;
  const Issue ordinary_;
  std::mutex opening_;  // held while a session is opened
};

}  // namespace tutti
