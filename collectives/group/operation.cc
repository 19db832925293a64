#include "collectives/group/operation.h"

#include <cstdio>
#include <utility>

#include <tutti/log.h>

#include "collectives/arguments.h"
#include "collectives/record/trace.h"
#include "collectives/schedule/algorithm.h"

namespace tutti {

Status forked_child() {
  return Status(Code::unsupported, "a communicator does not work in a forked child; call init again in it");
}

Engine::Engine(DriverOptions options) : driver(options) {}
Engine::~Engine() = default;

OperationPool::~OperationPool() {
  delete spare_.load();
  for (Operation* operation : idle_) delete operation;
}

Operation* OperationPool::take() {
  if (Operation* spare = spare_.exchange(nullptr, std::memory_order_acquire)) return spare;
  // In a forked child, the lock may be held by a thread that does not exist there.
  if (born_ == fork_generation()) {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Operation* operation = idle_.back();
      idle_.pop_back();
      return operation;
    }
  }
  return new Operation;
}

void OperationPool::give_back(Operation* operation) {
  Operation* none = nullptr;
  if (spare_.compare_exchange_strong(none, operation, std::memory_order_release)) return;
  if (born_ != fork_generation()) return;
  const std::lock_guard lock(mutex_);
  idle_.push_back(operation);
}

Operation::Callback Operation::closed;

// An exception must not reach the driving thread, which may be executing another operation.
void run_callback(const std::function<void(const Status&)>& callback, const Status& status) {
  try {
    callback(status);
  } catch (const std::exception& error) {
    log::error("a callback given to `then` threw an exception, which is dropped: ", error.what());
  } catch (...) {
    log::error("a callback given to `then` threw something other than a std::exception; it is dropped");
  }
}

Operation* Operation::create(std::shared_ptr<Engine> engine) {
  Operation* operation = engine->operations.take();
  operation->engine_ = std::move(engine);
  operation->references_.store(1, std::memory_order_relaxed);
  operation->done_.store(0, std::memory_order_relaxed);
  operation->callbacks_.store(nullptr, std::memory_order_relaxed);
  operation->status_ = Status();
  operation->user_failure = Status();
  operation->received = {};
  operation->queued = 0;
  operation->announced = operation->expired = operation->executing = operation->ending = false;
  operation->issued.store({}, std::memory_order_relaxed);
  operation->deadline = Deadline::never();
  return operation;
}

void Operation::stamp(Deadline::Clock::time_point now) {
  if (issued.load(std::memory_order_relaxed) != Deadline::Clock::time_point()) return;
  issued.store(now, std::memory_order_relaxed);
  deadline = Deadline::after(timeout, now);
}

Work Operation::handle(Operation& operation) {
  operation.retain();
  return Work(&operation);
}

void Operation::release() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  run.reset();
  shared_schedule.reset();
  registered_schedule.reset();
  op = ReduceOp::sum;
  // The engine owns the pool, and this may be the last reference to the engine. So the reference must outlive
  // the call of `give_back`.
  const std::shared_ptr<Engine> engine = std::move(engine_);
  engine->operations.give_back(this);
}

bool Operation::wait(Deadline until) { return is_done() || engine_->driver.wait(done_, until); }

void Operation::then(std::function<void(const Status&)> callback) {
  Callback* first = callbacks_.load(std::memory_order_acquire);
  if (first != &closed) {
    auto node = std::make_unique<Callback>(Callback{std::move(callback), first});
    while (node->next != &closed) {
      if (callbacks_.compare_exchange_weak(node->next, node.get(), std::memory_order_acq_rel)) {
        static_cast<void>(node.release());
        return;
      }
    }
    callback = std::move(node->call);
  }
  run_callback(callback, status_);
}

void Operation::finish(const Status& status) {
  status_ = status;
  done_.store(1, std::memory_order_release);
  Callback* newest = callbacks_.exchange(&closed, std::memory_order_acq_rel);
  engine_->driver.notify(done_);
  Callback* in_order = nullptr;
  while (newest != nullptr) {
    Callback* const older = newest->next;
    newest->next = in_order;
    in_order = newest;
    newest = older;
  }
  while (in_order != nullptr) {
    const std::unique_ptr<Callback> callback(in_order);
    in_order = callback->next;
    run_callback(callback->call, status);
  }
}

void Operation::cancel(const Status& why) {
  if (executing) {
    execution->cancel(why);
  } else {
    owner->on_finished(*this, why);
  }
}

Result<StreamWait> Operation::wait_on(void* stream) {
  if (is_done()) return status_.ok() ? Result<StreamWait>(StreamWait()) : status_;
  Result<StreamWait> found = execution->wait_on(stream);
  if (!found.ok()) return found.status().with_context(describe() + ": wait_on");
  return found;
}

void Operation::bind(Mesh& mesh) {
  binding = RunBinding{};
  binding.mesh = &mesh;
  binding.owner = this;
  binding.finished = [](void* self, const Status& status) {
    auto& operation = *static_cast<Operation*>(self);
    operation.executing = false;
    operation.owner->on_finished(operation, status);
  };
  binding.failed = [](void* self, const Status& why) {
    auto& operation = *static_cast<Operation*>(self);
    operation.owner->on_failed(operation, why);
  };
}

void Operation::bind(const Call& made, std::uint32_t context, Mesh& mesh, std::span<const int> ranks) {
  bind(mesh);
  op = *made.op;
  binding.input = static_cast<const std::byte*>(made.in.data);
  binding.output = static_cast<std::byte*>(made.out.data);
  binding.reducer = Reducer(call.type, op);
  binding.reducer.failure = &user_failure;
  binding.factor = op.factor();
  binding.divisor = ranks.size();
  binding.context = context;
  binding.sequence = sequence;
  binding.call = call;
  binding.ranks = ranks;
}

Call Operation::own_call(const Call& made) const {
  Call own = made;
  own.op = &op;
  return own;
}

std::string Operation::name() const {
  const std::string text = tutti::describe(call);
  return kind == Kind::collective ? text + " #" + std::to_string(sequence) : text;
}

std::string Operation::describe() const {
  const auto since = issued.load(std::memory_order_relaxed);
  const auto elapsed =
      since == Deadline::Clock::time_point() ? Deadline::Clock::duration(0) : Deadline::Clock::now() - since;
  const double seconds = std::chrono::duration<double>(elapsed).count();
  char text[32];
  std::snprintf(text, sizeof text, " after %.3f s", seconds);
  return name() + text;
}

}  // namespace tutti
