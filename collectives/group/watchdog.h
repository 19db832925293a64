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

// `Watchdog` watches operations that take long: it finds out which members have not called them, and which
// have left.
//
// An operation that has waited for 100 ms is announced to all members, which compare it with their own call
// of that number. An operation whose time is over is reported to the leader, the first member that is there;
// it asks all members how far they are, and fails the communicator with an error that names the late members.
//
// Everything is for the driving thread.
class Watchdog {
 public:
  Watchdog(std::uint32_t context, const Members& members, ControlDesk& desk, Failure& failure,
           const Journal& journal, const LiveOperations& live);

  // Checks the times of all operations under way. It does so only in some calls, since reading the clock is
  // slow.
  void look();
  // Ends the inquiry that this rank leads, if there is one and its time is over.
  void conclude();
  Deadline next_deadline() const;
  // Notes a failure if an operation over shared memory has been waiting for a member that has left: messages
  // tell that their sender has left, memory does not.
  void look_for_leavers();
  // The communicator has failed.
  void drop() { inquiry_.reset(); }

  // Another member (`origin`, its world rank) has written over the control plane: `on_expired`, that an
  // operation's time is over there; `on_where`, the leader's question how far this rank is; `on_here`, an
  // answer to that question.
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
  std::optional<Inquiry> inquiry_;  // that this rank leads
};

}  // namespace tutti
