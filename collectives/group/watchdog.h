#pragma once

#include <cstdint>
#include <optional>

#include <tutti/deadline.h>

#include "collectives/group/failure.h"
#include "collectives/group/inquiry.h"
#include "collectives/group/journal.h"
#include "collectives/group/live_operations.h"
#include "collectives/group/members.h"
#include "collectives/group/operation.h"
#include "control/desk.h"
#include "control/notes.h"

namespace tutti {

// `Watchdog` watches operations that take long: it finds the members that have not called them, and those
// that have left.
//
// A collective that has waited for 100 ms is announced to all members, which compare it with their own call
// under the same number. A collective that has timed out is reported to the leader, the first member that is
// alive. The leader asks all members for their progress. Then it fails the communicator, and names the
// members that are late or do not answer.
//
// Only the driving thread calls these functions.
class Watchdog {
 public:
  Watchdog(std::uint32_t context, const Members& members, ControlDesk& desk, Failure& failure,
           const Journal& journal, const LiveOperations& live);

  // One in many calls of `look` checks the times of all operations in flight. The other calls return at once,
  // because reading the clock is slow.
  void look();
  // Ends the inquiry that this rank leads, if there is one and it is complete.
  void conclude();
  Deadline next_deadline() const;
  // Returns whether this rank leads an inquiry.
  bool inquires() const { return inquiry_.has_value(); }
  // Notes a failure if an operation over shared memory waits for a member that has left. (An operation over
  // messages notices it when the connection ends.)
  void look_for_leavers();
  // Drops the inquiry, because the communicator has failed.
  void drop() { inquiry_.reset(); }

  // Called when a note of another member, whose world rank is `origin`, has arrived over the control plane.
  // - `on_expired`: an operation has timed out at that member.
  // - `on_where`: the leader asks for this rank's progress.
  // - `on_here`: a member answers that question.
  void on_expired(int origin, const ExpiredNote& expired);
  void on_where(int origin, const CallNote& call);
  void on_here(int origin, const HereNote& answer);

 private:
  void look_now();
  void announce(Operation& operation);
  void expire(Operation& operation);
  void inquire(const ExpiredNote& expired);
  Status timed_out(const Operation& operation) const;
  int leader() const;

  const std::uint32_t context_;
  const Members& members_;
  ControlDesk& desk_;
  Failure& failure_;
  const Journal& journal_;
  const LiveOperations& live_;
  std::uint32_t looks_ = 0;
  std::optional<Inquiry> inquiry_;  // the inquiry that this rank leads, if any
};

}  // namespace tutti
