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

// `SharedCollectives` is how a communicator's members act together through the memory that they share, if
// they do. Everything is for the driving thread, except what is marked.
class SharedCollectives {
 public:
  SharedCollectives(const Members& members, Failure& failure) : members_(members), failure_(failure) {}

  // From now on the members share memory, in windows of `window_bytes`. Before anything is issued.
  void open(std::unique_ptr<SharedExecutor> executor, std::uint64_t window_bytes);
  void close() { executor_.reset(); }
  // Any thread; 0: they share none.
  std::uint64_t window_bytes() const { return window_bytes_; }
  // Null: they share none.
  SharedExecutor* executor() const { return executor_.get(); }

  // Notes a failure that another rank has written on the board.
  void listen() {
    if (executor_ != nullptr && executor_->board().unheard()) hear();
  }
  // The cause of what this rank sees as `why`: a rank that fails writes it on the board before it leaves.
  Status first_cause(const Status& why);
  // Tells the others, and stops.
  void fail(const Status& why);

  // Any thread: makes an operation with a shared schedule ready to be submitted. If all of what others would
  // reach into here may lie in `registry`, the members are to vote on the registered form, and that is made
  // ready, too.
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
