#pragma once

#include <mutex>

#include <tutti/communicator.h>

#include "collectives/group/offloading.h"
#include "collectives/group/operation.h"
#include "collectives/group/parts.h"
#include "collectives/run/offloaded_execution.h"
#include "collectives/run/schedule_cache.h"
#include "core/call.h"
#include "core/fingerprint.h"

namespace tutti {

class Collectives;

// `OffloadedCollectives` issues the collectives that libraries carry out, and those that nothing can carry
// out (docs/seams/offload.md). The arguments of all calls must have been checked. Any thread may call.
class OffloadedCollectives {
 public:
  // `collectives` owns the operations.
  OffloadedCollectives(const Parts& parts, Offloading& offloading, ScheduleCache& cache,
                       Collectives& collectives)
      : parts_(parts), offloading_(offloading), cache_(cache), collectives_(collectives) {}

  // Issues a call that `library` carries out. A communicator's first such call opens the library's session.
  Work issue(const Call& call, const Fingerprint& print, const CallOptions& options, Library& library);
  // Issues a call that nothing can carry out. It ends with `why` once all ranks have made it.
  Work refuse_together(const Call& call, const Fingerprint& print, const CallOptions& options,
                       const Status& why);

 private:
  class Peers;

  Result<Operation*> make(const Call& call, const Fingerprint& print, const CallOptions& options);
  Work issue_first(const Call& call, const Fingerprint& print, const CallOptions& options, Library& library);
  Status open(Library& library, Deadline deadline);

  const Parts parts_;
  Offloading& offloading_;
  ScheduleCache& cache_;
  Collectives& collectives_;
  std::mutex opening_;  // held while a session is opened
};

}  // namespace tutti
