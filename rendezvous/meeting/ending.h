#pragma once

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "rendezvous/meeting/meeting.h"

namespace tutti::rendezvous {

// `Ending` ends one rank's part in a meeting: ranks agree on the first failure, give the others time to hear
// of it, and leave the store.
class Ending {
 public:
  explicit Ending(Meeting& meeting) : meeting_(meeting) {}

  // Puts a failure in the table's place. Returns the failure that all ranks will see, which is the first one
  // published. If all ranks have met just now, this is `settle`.
  Status publish(const Status& failure);
  // Does the same once the ranks have met. The others may have noticed a consequence of this failure first.
  Status settle(const Status& failure);
  // Returns the failure with its cause, if that is rank 0: a store that rank 0 serves ends with it.
  Status first_cause(const Status& failure) const;
  // Leaves the store with the result of the round. The counter `present` must be right even after a failure.
  void take_leave(const Status& outcome);

 private:
  // `counted`: how often the key `present` counts this rank, which is 1 or 0.
  void linger(const Status& failure, int counted);
  void leave(bool failed, bool awaits_others);
  void clear();

  Meeting& meeting_;
};

}  // namespace tutti::rendezvous
