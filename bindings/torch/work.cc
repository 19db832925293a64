#include "bindings/torch/work.h"

#include <utility>

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "bindings/torch/completions.h"
#include "bindings/torch/error.h"
#include "bindings/torch/limit.h"
#include "bindings/torch/streams.h"

namespace tutti_torch {
namespace {

// Returns null if no profiler runs, which saves the profiler's bookkeeping.
const char* profiling_title(const Label& label) {
  const bool wanted =
      label.profiled && at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE).has_value();
  return wanted ? label.name : nullptr;
}

}  // namespace

void (*check_interrupt)() = [] {};

OperationWork::OperationWork(int rank, const Label& label, const std::vector<at::Tensor>& inputs,
                             std::vector<at::Tensor> outputs, Flight flight,
                             std::shared_ptr<Completions> completions)
    : PendingWork(rank, label.type, profiling_title(label), inputs),
      label_(label),
      outputs_(std::move(outputs)),
      flight_(std::move(flight)),
      completions_(std::move(completions)) {}

OperationWork::~OperationWork() {
  if (birth_.forked_since() || settled_.load(std::memory_order_acquire) || flight_.handles.empty()) return;
  if (over() && !flight_.epilogue) return;
  Label label = label_;
  label.profiled = false;  // the profiler has already shown the operation
  completions_->add(c10::make_intrusive<OperationWork>(
      rank_, label, std::vector<at::Tensor>(), std::move(outputs_), std::move(flight_), completions_));
}

bool OperationWork::over() const {
  for (const WorkHandle& handle : flight_.handles) {
    if (tutti_work_test(handle.get()) == 0) return false;
  }
  return true;
}

bool OperationWork::isCompleted() {
  if (!settled_.load(std::memory_order_acquire)) {
    birth_.check();
    if (!over()) return false;
    settle();
  }
  return are_results_there();
}

bool OperationWork::are_results_there() const {
  for (const auto& part : flight_.parts) {
    if (!static_cast<OperationWork&>(*part).are_results_there()) return false;
  }
  return !copied_ || copied_->query();
}

bool OperationWork::isSuccess() const {
  return settled_.load(std::memory_order_acquire) && exception_ == nullptr;
}

std::exception_ptr OperationWork::exception() const {
  return settled_.load(std::memory_order_acquire) ? exception_ : nullptr;
}

int OperationWork::sourceRank() const {
  tutti_received received = TUTTI_RECEIVED_INIT;
  TORCH_CHECK(label_.type == c10d::OpType::RECVANYSOURCE && flight_.handles.size() == 1,
              "tutti: only a receive from any rank has a source rank");
  check(tutti_work_received(flight_.handles.front().get(), &received), label_.name);
  return received.source;
}

std::vector<at::Tensor> OperationWork::result() {
  TORCH_CHECK(flight_.device || isCompleted(),
              "Work needs to be completed before calling result(). Should call wait() first.");
  return outputs_;
}

// After `wait`, the program asks where a message from any rank has come from. So for such a message, `wait`
// always blocks the host.
bool OperationWork::wait(std::chrono::milliseconds timeout) {
  const bool unlimited = timeout == kNoTimeout || timeout == c10d::kUnsetTimeout;
  if (flight_.device && unlimited && label_.type != c10d::OpType::RECVANYSOURCE) {
    birth_.check();
    follow();
    return true;
  }
  if (!settled_.load(std::memory_order_acquire)) {
    birth_.check();
    wait_on_host(unlimited ? longest_limit : limit(timeout));
    settle();
  }
  if (exception_ != nullptr) std::rethrow_exception(exception_);
  if (flight_.device) {
    follow();
    if (!are_results_there()) current_stream(*flight_.device)->synchronize();
  }
  return true;
}

void OperationWork::wait_on_host(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (const WorkHandle& handle : flight_.handles) {
    for (int done = 0;;) {
      const std::chrono::nanoseconds period =
          std::min<std::chrono::nanoseconds>(interrupt_period, end - std::chrono::steady_clock::now());
      tutti_work_wait_for(handle.get(), std::max<std::int64_t>(period.count(), 0), &done);
      if (done != 0) break;
      TORCH_CHECK_WITH(DistBackendError, std::chrono::steady_clock::now() < end, "tutti: ", label_.name,
                       ": Operation timed out! (the operation continues; the time limit of wait was ",
                       timeout.count(), " ms)");
      check_interrupt();
    }
  }
}

// Makes the current stream wait for the operation and for the copies of its results. If the operation's error
// is already known, throws it.
void OperationWork::follow() {
  for (const auto& part : flight_.parts) part->wait();
  if (!flight_.parts.empty()) return;
  const c10::Stream stream = *current_stream(*flight_.device);
  const std::lock_guard lock(settling_);
  if (exception_ != nullptr) std::rethrow_exception(exception_);
  if (copied_) return copied_->block(stream);
  for (const WorkHandle& handle : flight_.handles) {
    const int code = tutti_work_wait_on(handle.get(), handle_of(stream));
    if (code != TUTTI_OK) std::rethrow_exception(last_error(code, label_.name, label_.timeout));
  }
  if (flight_.epilogue) copy_results(stream);
}

void OperationWork::copy_results(const c10::Stream& stream) {
  const c10::StreamGuard guard(stream);
  flight_.epilogue();
  for (const at::Tensor& each : flight_.memory) record_use(each, stream);
  for (const at::Tensor& each : outputs_) record_use(each, stream);
  c10::Event copied(stream.device_type());
  copied.record(stream);
  copied_ = std::move(copied);
}

void OperationWork::drive() {
  for (const WorkHandle& handle : flight_.handles) tutti_work_wait(handle.get());
}

std::exception_ptr OperationWork::outcome() {
  for (const WorkHandle& handle : flight_.handles) {
    const int code = tutti_work_status(handle.get());
    if (code != TUTTI_OK) return last_error(code, label_.name, label_.timeout);
  }
  try {
    if (flight_.epilogue && !flight_.device) flight_.epilogue();
    if (flight_.epilogue && flight_.device && !copied_) copy_results(pool_stream(*flight_.device));
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

// No code under the lock may need the GIL, since a thread that waits for the lock may hold the GIL.
// So this function releases tensors and calls callbacks outside the lock, because both may need
// Python.
void OperationWork::settle() {
  std::vector<at::Tensor> memory;
  std::function<void()> epilogue;
  for (const auto& part : flight_.parts) static_cast<OperationWork&>(*part).settle();
  {
    const std::lock_guard lock(settling_);
    if (settled_.load(std::memory_order_relaxed)) return;
    finish(outcome());
    memory.swap(flight_.memory);
    epilogue.swap(flight_.epilogue);
    settled_.store(true, std::memory_order_release);
  }
  complete_future();
}

void OperationWork::make_wait_for_copies(const c10::Stream& stream) const {
  for (const auto& part : flight_.parts) static_cast<OperationWork&>(*part).make_wait_for_copies(stream);
  if (copied_) copied_->block(stream);
}

// Completing the future runs its callbacks on this thread. A future of CUDA tensors also
// records the stream that is current here. Threads that wait for the future then wait for the work that is
// already on that stream. So this function makes a stream of torch's pool current, which has none of the
// program's other work.
void OperationWork::complete_future() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(settling_);
    if (future_ == nullptr || std::exchange(future_taken_, true)) return;
    future = future_;
  }
  if (exception_ != nullptr) return future->setErrorIfNeeded(exception_);
  std::optional<c10::StreamGuard> guard;
  try {
    if (flight_.device) {
      guard.emplace(pool_stream(*flight_.device));
      make_wait_for_copies(guard->current_stream());
    }
  } catch (...) {
    return future->setErrorIfNeeded(std::current_exception());
  }
  future->markCompleted(c10::IValue(outputs_));
}

void OperationWork::entrust() {
  if (entrusted_.exchange(true)) return;
  completions_->add(c10::intrusive_ptr<OperationWork>::unsafe_reclaim_from_nonowning(this));
}

c10::intrusive_ptr<c10::ivalue::Future> OperationWork::getFuture() {
  bool pending = false;
  birth_.check();
  {
    const std::lock_guard lock(settling_);
    if (future_ != nullptr) return future_;
    std::vector<at::Device> devices;
    if (flight_.device) devices.push_back(*flight_.device);
    future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                       std::move(devices));
    pending = !settled_.load(std::memory_order_relaxed);
  }
  if (pending) {
    entrust();
  } else {
    complete_future();
  }
  return future_;
}

}  // namespace tutti_torch
