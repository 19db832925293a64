#include "collectives/group/gate.h"

#include <thread>

namespace tutti {

Gate::Gate(Driver& driver, ActiveGroups& active, Failure& failure, Journal& journal, LiveOperations& live,
           SharedCollectives& shared)
    : driver_(driver), active_(active), failure_(failure), journal_(journal), live_(live), shared_(shared) {}

Work Gate::launch(Operation& operation) {
  Work work = Operation::handle(operation);
  if (try_enter()) {
    start(operation);
    leave();
  } else if (driver_.forked()) {
    live_.refuse(operation, forked_child());
  } else {
    hand_over(operation);
  }
  return work;
}

void Gate::hand_over(Operation& operation) {
  operation.task.operation = &operation;
  operation.task.gate = this;
  operation.task.run = [](DriverTask& task) {
    const auto& handed_over = static_cast<Operation::Task&>(task);
    Gate& gate = *handed_over.gate;
    gate.start(*handed_over.operation);
    gate.waiting_.fetch_sub(1, std::memory_order_release);
  };
  operation.queued = journal_.now();
  waiting_.fetch_add(1, std::memory_order_relaxed);
  driver_.post(operation.task);
}

void Gate::start(Operation& operation) {
  if (operation.kind == Operation::Kind::transfers) operation.sequence = journal_.number_transfer();
  live_.begin(operation);
  shared_.listen();
  if (failure_.happened()) {
    live_.give_up(operation, failure_.status());
  } else {
    operation.owner->start(operation);
  }
}

// An abort has no place in the order of calls, so it does not wait for the operations that were handed over.
void Gate::abort(const Status& why) TUTTI_NO_THREAD_SAFETY_ANALYSIS {
  failure_.note(why);
  if (driver_.try_enter()) {
    leave();
  } else {
    active_.stir_all();
    driver_.wake();
  }
}

void Gate::settle() {
  while (waiting_.load(std::memory_order_acquire) != 0 && !driver_.forked()) {
    if (!driver_.progress()) std::this_thread::yield();
  }
}

}  // namespace tutti
