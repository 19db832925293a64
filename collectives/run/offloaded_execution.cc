#include "collectives/run/offloaded_execution.h"

#include <utility>

namespace tutti {

Status Library::blamed(const std::string& what, const Status& error) const {
  const bool names_rank = error.peer() >= 0;
  return Status(error.code(), (names_rank ? name : here) + what + error.message(),
                names_rank ? error.peer() : world_rank);
}

void OffloadedExecution::prepare(Driver& driver, const RunBinding& binding, CachedSchedule::Lease witness) {
  driver_ = &driver;
  binding_ = &binding;
  library_ = nullptr;
  library_status_ = why_ = Status();
  witness_ = std::move(witness);
  witness_over_.store(0, std::memory_order_relaxed);
  witness_runs_ = library_over_ = failed_ = cancelled_ = false;
}

void OffloadedExecution::expect(const Library& library) {
  library_ = &library;
  call_.execution = task_.execution = this;
  call_.done = [](OffloadCall& call, const Status& status) {
    static_cast<LibraryCall&>(call).execution->library_done(status);
  };
  task_.run = [](DriverTask& task) { static_cast<Task&>(task).execution->library_ended(); };
}

void OffloadedExecution::refuse(const Status& why) {
  library_status_ = why;
  library_over_ = true;
}

void OffloadedExecution::issue(const Call& call, void* stream) {
  call_.call = call;
  call_.stream = stream;
  OffloadCall* const only = &call_;
  library_->session->issue({&only, 1});
}

void OffloadedExecution::withdraw(const Status& why) { library_done(why); }

// Runs on any thread. Must not touch the operation after posting the task: by then the operation
// may have ended and may be in use for another call.
void OffloadedExecution::library_done(const Status& status) {
  library_status_ = status;
  driver_->post(task_);
}

// Runs on the driving thread, possibly before the execution has been started.
void OffloadedExecution::library_ended() {
  library_over_ = true;
  judge_library();
}

// Reports how the library's part has ended. A library that notices a mismatch sees only what it
// was given of each call, while the witness compares the whole calls. So the library's mismatch is reported
// only if the witness has not found one.
void OffloadedExecution::judge_library() {
  const Status& status = library_status_;
  const bool is_mismatch = status.code() == Code::mismatch;
  if (library_ == nullptr || status.ok() || (is_mismatch && !is_witness_over())) return settle();
  const Status blamed = library_->blamed(": ", status);
  fail(Status(blamed.code(), blamed.message(), is_mismatch ? status.peer() : blamed.peer()));
}

void OffloadedExecution::start(const RunBinding& binding) {
  RunBinding own = binding;
  own.owner = this;
  own.finished = [](void* self, const Status&) { static_cast<OffloadedExecution*>(self)->witness_ended(); };
  own.failed = [](void* self, const Status& why) { static_cast<OffloadedExecution*>(self)->fail(why); };
  witness_runs_ = true;
  witness_.get()->start(own);
}

void OffloadedExecution::witness_ended() {
  witness_runs_ = false;
  witness_over_.store(1, std::memory_order_release);
  driver_->notify(witness_over_);
  if (library_over_) judge_library();
}

// Reports a failure of the library's part or of the witness. Only the first failure is reported, since the
// owner then cancels both.
void OffloadedExecution::fail(const Status& why) {
  if (cancelled_) return settle();
  if (std::exchange(failed_, true)) return;
  binding_->failed(binding_->owner, why);
}

void OffloadedExecution::cancel(const Status& why) {
  cancelled_ = true;
  why_ = why;
  if (witness_runs_) {
    witness_.get()->cancel(why);
  } else {
    witness_ended();  // the witness may have ended before, or may never have been started
  }
}

void OffloadedExecution::settle() {
  if (!is_witness_over() || !library_over_ || (failed_ && !cancelled_)) return;
  const Status status = cancelled_ ? std::move(why_) : std::move(library_status_);
  witness_.reset();
  binding_->finished(binding_->owner, status);
}

std::vector<int> OffloadedExecution::awaited() const {
  return witness_runs_ ? witness_.get()->awaited() : std::vector<int>();
}

std::string_view OffloadedExecution::awaited_library() const {
  return library_over_ || witness_runs_ ? std::string_view() : std::string_view(library_->name);
}

// A communicator's first call can fail before the session is opened, and `wait_on` can be called
// before that call has ended. So there may be no session yet.
Result<StreamWait> OffloadedExecution::wait_on(void* stream) {
  if (library_ == nullptr) return Execution::wait_on(stream);
  if (!library_over_ && library_->session != nullptr) return library_->session->wait_on(call_, stream);
  const Status& ended = cancelled_ ? why_ : library_status_;
  return ended.ok() ? Result<StreamWait>(StreamWait()) : ended;
}

}  // namespace tutti
