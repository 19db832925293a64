#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tutti/status.h>

#include "collectives/group/failure.h"
#include "collectives/group/members.h"
#include "collectives/group/operation.h"
#include "collectives/run/schedule_cache.h"
#include "collectives/run/shared_executor.h"
#include "collectives/schedule/problem.h"
#include "collectives/schedule/registered.h"

namespace tutti {

// `SharedCollectives` runs a communicator's collectives through the memory that its members share, if they
// share any. Only the driving thread calls these functions, except where a comment says otherwise.
class SharedCollectives {
 public:
  SharedCollectives(const Members& members, Failure& failure) : members_(members), failure_(failure) {}

  // From this call on, the members share memory. Each member has a window of `window_bytes` bytes. Must be
  // called before any operation is issued.
  void open(std::unique_ptr<SharedExecutor> executor, std::uint64_t window_bytes);
  void close() { executor_.reset(); }
  // Returns the size in bytes of each member's window; 0 if the members share no memory. Any thread may call.
  std::uint64_t window_bytes() const { return window_bytes_; }
  // Returns null if the members share no memory.
  SharedExecutor* executor() const { return executor_.get(); }

  // Notes a failure that another rank has written on the board (see Board).
  void listen() {
    if (executor_ != nullptr && executor_->board().unheard()) hear();
  }
  // Returns the first cause of the communicator's failure, if it is known. Otherwise returns `why`, the
  // failure that this rank has seen. To find the cause, this function reads the board: a failing rank
  // writes its cause there before it leaves.
  Status first_cause(const Status& why);
  // Tells the other members of the failure, and drops the collectives in progress.
  void fail(const Status& why);

  // Makes an operation with a shared schedule ready to be submitted. A collective may have a registered form,
  // in which members access each other's buffers. The members vote on whether to use that form, unless the
  // call names an algorithm. `bind` prepares that form, too, if `registry` contains every buffer of this rank
  // that other members would access. Any thread may call.
  void bind(Operation& operation, const Problem& problem, ScheduleCache& cache,
            const Registry& registry) const;

  // See Pollable.
  bool prepare_sleep();
  void cancel_sleep() {
    if (executor_ != nullptr) executor_->cancel_sleep();
  }
  bool expects_memory() const { return executor_ != nullptr && executor_->busy(); }

 private:
  void hear();

  const Members& members_;
  Failure& failure_;
  std::uint64_t window_bytes_ = 0;
  std::unique_ptr<SharedExecutor> executor_;
};

}  // namespace tutti
