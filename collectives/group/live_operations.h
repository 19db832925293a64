#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <tutti/communicator.h>

#include "collectives/group/active_groups.h"
#include "collectives/group/journal.h"
#include "collectives/group/members.h"
#include "collectives/group/operation.h"

namespace tutti {

// `LiveOperations` makes a communicator's operations, lists those in flight, and ends them.
//
// An operation that is given up moves from this list (see `newest`) to a second list. The operation ends
// later, since its memory may still be in use.
class LiveOperations {
 public:
  LiveOperations(std::shared_ptr<Engine> engine, const Members& members, Journal& journal,
                 std::chrono::nanoseconds default_timeout, ActiveGroups::Member& group);

  // --- any thread ---

  // Makes an operation that is about to be issued.
  Operation* make(OperationOwner& owner, Operation::Kind kind, const Fingerprint& call,
                  const CallOptions& options);
  // Makes an operation that may complete before the user's call returns. If the operation does not, the
  // caller of this function must call `keep`.
  Operation* make_passing(OperationOwner& owner, Operation::Kind kind);
  // Makes an operation that has failed already.
  Work refuse(const Fingerprint& call, const Status& why);
  // Fails an operation that has not begun.
  void refuse(Operation& operation, const Status& why);

  // --- driving ---

  void begin(Operation& operation);
  // Takes an operation of `make_passing` that has not completed, and adds it to the list. From then on, it
  // continues like any other.
  Work keep(Operation& operation, const CallOptions& options);
  void end(Operation& operation, const Status& status);
  // These two functions give up one operation, or all operations in flight. An operation that was given up
  // ends once nothing touches its memory any more.
  void give_up(Operation& operation, const Status& why);
  void cancel_all(const Status& why);
  // Returns the newest operation that has not been given up; null if there is none. The `next` of each
  // operation is the next older one.
  Operation* newest() const { return newest_; }
  bool empty() const { return newest_ == nullptr; }

  // --- threads that do not drive ---

  // Waits until all operations that were given up have ended.
  void await_ending();

 private:
  std::chrono::nanoseconds timeout(const CallOptions& options) const;
  Status explain(const Operation& operation, const Status& why) const;
  static void link(Operation& operation, Operation*& first);
  void unlink(Operation& operation);

  const std::shared_ptr<Engine> engine_;
  const Members& members_;
  Journal& journal_;
  const std::chrono::nanoseconds default_timeout_;
  ActiveGroups::Member& group_;
  Operation* newest_ = nullptr;
  Operation* ending_ = nullptr;  // heads the list of the operations that were given up
};

}  // namespace tutti
