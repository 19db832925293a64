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
// do. Functions are for the driving thread, unless they are marked.
class SharedCollectives {
 public:
  SharedCollectives(const Members& members, Failure& failure) : members_(members), failure_(failure) {}

  // From now on the members share memory, in windows of `window_bytes`. Before anything is issued.
  void open(std::unique_ptr<SharedExecutor> executor, std::uint64_t window_bytes);
  void close() { executor_.reset(); }
  // Bytes of each member's window; 0 if they share no memory. Any thread may call.
  std::uint64_t window_bytes() const { return window_bytes_; }
  // Returns null if they share no memory.
  SharedExecutor* executor() const { return executor_.get(); }

  // Notes a failure that another rank has written on the board.
  void listen() {
    if (executor_ != nullptr && executor_->board().unheard()) hear();
  }
  // Returns the first cause of the failure that this rank sees as `why`: a failing rank writes its cause on
  // the board before it leaves.
  Status first_cause(const Status& why);
  // Tells the other members, and stops.
  void fail(const Status& why);

  // Makes an operation with a shared schedule ready to be submitted. If all buffers here that other members
  // would reach into may lie in `registry`, the members will vote on the registered form, so that is made
  // ready, too. Any thread may call.
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
