#include <optional>
#include <utility>

#include <tutti/work.h>

#include "collectives/group/operation.h"
#include "collectives/record/trace.h"

namespace tutti {

namespace {

// A callback runs on the driving thread, which cannot wait for itself.
void check_may_wait(Operation& operation) {
  if (operation.engine().driver.driven_by_this_thread()) {
    throw Error(Status(Code::invalid_argument, operation.describe() + ": wait inside a `then` callback"));
  }
}

// `TracedWait` shows in the trace how long a thread waits.
class TracedWait {
 public:
  explicit TracedWait(const Operation& operation) : trace_(operation.engine().trace.get()) {
    if (trace_ == nullptr) return;
    event_.kind = Trace::Event::Kind::wait;
    event_.call = operation.call;
    event_.began = Trace::now();
    event_.transfer = operation.kind == Operation::Kind::transfers;
    if (event_.transfer) return;  // a transfer gets its number when it starts, perhaps during this wait
    event_.context = operation.binding.context;
    event_.number = operation.sequence;
  }
  ~TracedWait() {
    if (trace_ == nullptr) return;
    event_.ended = Trace::now();
    trace_->add(event_);
  }
  TracedWait(const TracedWait&) = delete;
  TracedWait& operator=(const TracedWait&) = delete;

 private:
  Trace* const trace_;
  Trace::Event event_;
};

// Returns why a wait can make no progress (this process is a forked child, or the driver has failed). Returns
// ok if the wait can make progress.
Status stuck(Operation& operation) {
  Driver& driver = operation.engine().driver;
  if (driver.forked()) return forked_child().with_context(operation.describe());
  return driver.status().with_context(operation.describe());
}

void throw_if_failed(const Status& status) {
  if (!status.ok()) throw Error(status);
}

}  // namespace

Work::Work(const Work& other) : operation_(other.operation_) {
  if (operation_ != nullptr) operation_->retain();
}

Work::~Work() {
  if (operation_ != nullptr) operation_->release();
}

void Work::wait() {
  if (operation_ == nullptr) return;
  if (!operation_->is_done()) {
    check_may_wait(*operation_);
    const TracedWait traced(*operation_);
    if (!operation_->wait(Deadline::never())) throw Error(stuck(*operation_));
  }
  throw_if_failed(operation_->status());
}

bool Work::wait_for(std::chrono::nanoseconds timeout) {
  if (operation_ == nullptr) return true;
  if (!operation_->is_done()) {
    check_may_wait(*operation_);
    const TracedWait traced(*operation_);
    if (!operation_->wait(Deadline::after(timeout))) {
      throw_if_failed(stuck(*operation_));
      return false;
    }
  }
  throw_if_failed(operation_->status());
  return true;
}

// This thread drives first, so that no other thread can end the operation meanwhile. Then it lets
// others drive, since a stream that is full may get room for more work only when an operation has
// ended.
void Work::wait_on(void* stream) {
  if (operation_ == nullptr) return;
  Driver& driver = operation_->engine().driver;
  if (driver.forked()) throw Error(forked_child().with_context(operation_->describe()));
  std::optional<DriverGuard> guard;
  if (!driver.driven_by_this_thread()) guard.emplace(driver);
  const Result<StreamWait> found = operation_->wait_on(stream);
  guard.reset();
  throw_if_failed(found.status());
  const StreamWait& wait = *found;
  const Status added = wait ? wait() : Status();
  if (!added.ok()) throw Error(added.with_context(operation_->describe() + ": wait_on"));
}

bool Work::done() const { return operation_ == nullptr || operation_->is_done(); }

Status Work::status() const {
  if (operation_ == nullptr || !operation_->is_done()) return Status();
  return operation_->status();
}

void Work::then(std::function<void(const Status&)> callback) {
  if (operation_ == nullptr) {
    run_callback(callback, Status());
  } else {
    operation_->then(std::move(callback));
  }
}

Work::Received Work::received() const {
  return operation_ == nullptr || !operation_->is_done() ? Received{} : operation_->received;
}

}  // namespace tutti
