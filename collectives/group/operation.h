#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/work.h>

#include "collectives/record/history.h"
#include "collectives/run/execution.h"
#include "collectives/run/offloaded_execution.h"
#include "collectives/run/run_binding.h"
#include "collectives/run/schedule_cache.h"
#include "collectives/run/shared_execution.h"
#include "collectives/run/staged_transfers.h"
#include "collectives/run/transfers.h"
#include "core/call.h"
#include "core/fingerprint.h"
#include "core/fork_guard.h"
#include "transport/driver/driver.h"

namespace tutti {

class Gate;
class Mesh;
class OperationOwner;
class Trace;
struct Engine;

// `Operation` is one operation in flight: a collective, or messages to and from other ranks. An `Execution`
// carries it out. The caller's `Work` holds a reference to the operation. The group holds another reference
// until the operation has ended.
class Operation {
 public:
  enum class Kind : std::uint8_t { collective, transfers };

  struct Task : DriverTask {
    Operation* operation = nullptr;
    Gate* gate = nullptr;
  };

  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // --- any thread ---

  // Makes an operation whose first reference is the caller's.
  static Operation* create(std::shared_ptr<Engine> engine);
  // Sets the time from which the deadline is counted. Only the first call has an effect.
  void stamp(Deadline::Clock::time_point now);
  static Work handle(Operation& operation);
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release();
  bool is_done() const { return done_.load(std::memory_order_acquire) != 0; }
  bool wait(Deadline deadline);
  // The status is valid once the operation is done.
  const Status& status() const { return status_; }
  void then(std::function<void(const Status&)> callback);
  // Ends the operation, wakes waiters and runs callbacks. Called once.
  void finish(const Status& status);
  Engine& engine() const { return *engine_; }
  // Fills `binding`, so that the execution uses `mesh` and reports to `owner`.
  void bind(Mesh& mesh);
  // Fills `binding` for a collective among `ranks` of the world, and keeps a copy of the reduction in `op`.
  void bind(const Call& made, std::uint32_t context, Mesh& mesh, std::span<const int> ranks);
  // Returns a copy of the call. The copy refers to `op`, the operation's own copy of the reduction.
  Call own_call(const Call& made) const;
  // Returns a text such as "all_reduce(count=4, float32, sum) #17" or "send(count=4, float32)".
  std::string name() const;
  // Returns `name()` followed by " after 0.123 s".
  std::string describe() const;

  // --- driving ---

  // Starts the execution.
  void execute() {
    executing = true;
    execution->start(binding);
  }
  // Gives the operation up. The operation ends once nothing touches its memory any more, possibly before
  // `cancel` returns.
  void cancel(const Status& why);
  // Returns a function that makes the stream wait for the operation, or an empty function if the operation
  // has ended. Fails with `unsupported` if no library carries out the operation, or with the operation's own
  // error if it has failed.
  Result<StreamWait> wait_on(void* stream);
  // Returns the world ranks that the operation waits for.
  std::vector<int> awaited() const { return executing ? execution->awaited() : std::vector<int>(); }

  // The group sets these when it issues the operation.
  Kind kind = Kind::collective;
  OperationOwner* owner = nullptr;
  Fingerprint call;
  std::uint64_t sequence = 0;  // transfers are numbered separately, when they start
  std::uint8_t algorithm = 0;  // the algorithm that is used
  History::Time queued = 0;    // when it was issued, if it could not start at once
  History::Time started = 0;   // when it started, if it is timed
  // `issued` is the time from which `timeout` counts, and `deadline` is the time when the operation must be
  // done. Many operations complete before anyone needs these times. So the group reads the clock only when it
  // first looks at an operation that has not completed.
  std::atomic<Deadline::Clock::time_point> issued;
  std::chrono::nanoseconds timeout{0};
  Deadline deadline = Deadline::never();
  RunBinding binding;
  ReduceOp op = ReduceOp::sum;     // keeps a user function alive
  Execution* execution = nullptr;  // one of the next five members
  CachedSchedule::Lease run;
  SharedExecution shared;
  Transfers transfers;
  std::unique_ptr<StagedTransfers> staged;          // made when it is first needed
  std::unique_ptr<OffloadedExecution> offloaded;    // made when it is first needed
  std::shared_ptr<CachedSchedule> shared_schedule;  // these two keep the schedules of `shared` alive
  std::shared_ptr<CachedSchedule> registered_schedule;
  Status user_failure;  // the error of the user's function that combines elements
  Task task;
  Work::Received received;
  bool announced = false;  // the other members know that this operation has waited for a long time
  bool expired = false;    // this operation has timed out, and the other members have been asked why
  bool executing = false;  // the execution has started, and has not finished
  bool ending = false;     // this operation has been given up

  // These members link the operation into one of the group's two lists of operations in flight. Only the
  // driving thread uses them.
  Operation* next = nullptr;
  Operation* previous = nullptr;

 private:
  std::shared_ptr<Engine> engine_;
  std::atomic<std::uint32_t> references_{0};
  std::atomic<std::uint32_t> done_{0};
  Status status_;
  // The list `callbacks_` begins with the newest callback. Once the operation is done, `callbacks_`
  // is `&closed`.
  struct Callback {
    std::function<void(const Status&)> call;
    Callback* next = nullptr;
  };
  static Callback closed;
  std::atomic<Callback*> callbacks_{nullptr};
};

// Returns the error of every call that a forked child makes on a communicator.
Status forked_child();

// Calls a callback of `then`. An exception from the callback is logged and dropped.
void run_callback(const std::function<void(const Status&)>& callback, const Status& status);

// `OperationPool` recycles operations, so that a repeated call allocates nothing.
class OperationPool {
 public:
  OperationPool() = default;
  ~OperationPool();
  OperationPool(const OperationPool&) = delete;
  OperationPool& operator=(const OperationPool&) = delete;

  Operation* take();
  void give_back(Operation* operation);

 private:
  const std::uint32_t born_ = fork_generation();
  std::atomic<Operation*> spare_{nullptr};  // an operation that can be taken without locking
  std::mutex mutex_;
  std::vector<Operation*> idle_;
};

// `Engine` holds what a `Work` needs after its communicator is gone: the driver that it waits with, and the
// pool that its operation returns to.
struct Engine {
  explicit Engine(DriverOptions options);
  ~Engine();
  Driver driver;
  OperationPool operations;
  std::unique_ptr<Trace> trace;  // set before there are operations; null if there is no trace
};

// `OperationOwner` carries out operations of one kind, on the driving thread.
class OperationOwner {
 public:
  virtual ~OperationOwner() = default;
  virtual void start(Operation& operation) = 0;
  // Called when the execution cannot continue. The owner must either give the operation up or make
  // the group fail, which gives up all operations.
  virtual void on_failed(Operation& operation, const Status& why) = 0;
  // Called when the execution has finished or was never started, so nothing touches the operation's
  // memory any more. The owner ends the operation.
  virtual void on_finished(Operation& operation, const Status& status) = 0;
};

}  // namespace tutti
