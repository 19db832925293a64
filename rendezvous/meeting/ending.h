#pragma once

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "rendezvous/meeting/meeting.h"

namespace tutti::rendezvous {

// `Ending` ends one rank's part in a meeting. The rank agrees with the others on the first failure, gives
// late ranks time to learn of that failure, and leaves the store. exchange.h explains the keys.
class Ending {
 public:
  explicit Ending(Meeting& meeting) : meeting_(meeting) {}

  // Publishes a failure under the key `table`, in place of the table of all ranks. Returns the failure that
  // all ranks will see, which is the first one published. If the table is already there, all ranks have met,
  // and this function calls `settle` instead.
  Status publish(const Status& failure);
  // Publishes a failure under the key `done`, once the ranks have met. Returns the failure that was published
  // first. That may be another rank's failure, which may be either the cause or a consequence of `failure`.
  Status settle(const Status& failure);
  // Returns a failure that names rank 0 if rank 0 served the store and the store is gone. Otherwise returns
  // `failure`.
  Status first_cause(const Status& failure) const;
  // Leaves the store after an attempt to meet that ended with `outcome`. A rank leaves after a failure too,
  // so that the counter `present` stays right.
  void take_leave(const Status& outcome);

 private:
  // `counted` is 1 if the key `present` counts this rank, else 0.
  void linger(const Status& failure, int counted);
  void leave(bool failed, bool awaits_others);
  void clear();

  Meeting& meeting_;
};

}  // namespace tutti::rendezvous
