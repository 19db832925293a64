#pragma once

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "rendezvous/meeting/meeting.h"

namespace tutti::rendezvous {

// `Ending` is how one rank's part in a meeting ends: ranks agree on the first failure, give the others time
// to hear of it, and take leave.
class Ending {
 public:
  explicit Ending(Meeting& meeting) : meeting_(meeting) {}

  // Puts a failure in the table's place. Returns the failure that all ranks will see, which is the first one
  // published. If all ranks have met just now, this is `settle`.
  Status publish(const Status& failure);
  // Does the same once the ranks have met: the others may have noticed something that came of this failure.
  Status settle(const Status& failure);
  // The failure with its cause, if that is rank 0: where rank 0 serves the store, both end together.
  Status first_cause(const Status& failure) const;
  // Takes leave of the store with what came of the round. The counter `present` must be right also after a
  // failure.
  void take_leave(const Status& outcome);

 private:
  // `counted`: how often the key `present` counts this rank, which is 1 or 0.
  void linger(const Status& failure, int counted);
  void leave(bool failed, bool awaits_others);
  void clear();

  Meeting& meeting_;
};

}  // namespace tutti::rendezvous
