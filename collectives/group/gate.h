#pragma once

#include <atomic>
#include <cstdint>

#include <tutti/work.h>

#include "collectives/group/active_groups.h"
#include "collectives/group/failure.h"
#include "collectives/group/journal.h"
#include "collectives/group/live_operations.h"
#include "collectives/group/operation.h"
#include "collectives/group/shared_collectives.h"
#include "core/thread_annotations.h"
#include "transport/driver/driver.h"

namespace tutti {

// `Gate` passes calls to the driving thread, in the order in which they were issued. If no other thread
// drives, the calling thread becomes the driving thread. Otherwise it hands its operation over.
class TUTTI_CAPABILITY("baton") Gate {
 public:
  Gate(Driver& driver, ActiveGroups& active, Failure& failure, Journal& journal, LiveOperations& live,
       SharedCollectives& shared);

  // Starts an operation on this thread if no other thread drives. In this case, a small message is sent
  // before `launch` returns.
  Work launch(Operation& operation);
  // Takes the baton (the right to drive) for a call that may complete at once. Returns false if another
  // thread has the baton or the communicator has failed. If it returns true, the caller must call `leave`.
  bool enter_in_passing() TUTTI_TRY_ACQUIRE(true) TUTTI_NO_THREAD_SAFETY_ANALYSIS {
    if (!try_enter()) return false;
    shared_.listen();
    if (!failure_.happened()) return true;
    driver_.leave();
    return false;
  }
  // Acts on a failure that was noted while this thread had the baton, and gives the baton back.
  void leave() TUTTI_RELEASE() TUTTI_NO_THREAD_SAFETY_ANALYSIS {
    failure_.act();
    driver_.leave();
  }
  // Fails the communicator, now or as soon as the driving thread can act.
  void abort(const Status& why);
  // Returns whether this process is a forked child. A call in a forked child might wait forever for a lock
  // that a thread of the parent held.
  bool is_forked() const { return driver_.forked(); }
  // Returns once every operation that was handed over has started. The calling thread must not drive.
  void settle();

 private:
  // Returns false if another thread has the baton. Also returns false if an operation that was
  // handed over has not started yet, since operations must start in the order in which they were
  // issued.
  bool try_enter() TUTTI_TRY_ACQUIRE(true) TUTTI_NO_THREAD_SAFETY_ANALYSIS {
    return waiting_.load(std::memory_order_acquire) == 0 && driver_.try_enter();
  }
  void start(Operation& operation);
  void hand_over(Operation& operation);

  Driver& driver_;
  ActiveGroups& active_;
  Failure& failure_;
  Journal& journal_;
  LiveOperations& live_;
  SharedCollectives& shared_;
  std::atomic<std::uint64_t> waiting_{0};  // operations that were handed over and have not started
};

}  // namespace tutti
