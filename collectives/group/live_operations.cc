#include "collectives/group/live_operations.h"

#include <utility>

namespace tutti {

LiveOperations::LiveOperations(std::shared_ptr<Engine> engine, const Members& members, Journal& journal,
                               std::chrono::nanoseconds default_timeout, ActiveGroups::Member& group)
    : engine_(std::move(engine)),
      members_(members),
      journal_(journal),
      default_timeout_(default_timeout),
      group_(group) {}

Operation* LiveOperations::make_passing(OperationOwner& owner, Operation::Kind kind) {
  Operation* operation = Operation::create(engine_);
  operation->owner = &owner;
  operation->kind = kind;
  operation->algorithm = 0;
  return operation;
}

Operation* LiveOperations::make(OperationOwner& owner, Operation::Kind kind, const Fingerprint& call,
                                const CallOptions& options) {
  Operation* operation = make_passing(owner, kind);
  operation->call = call;
  operation->timeout = timeout(options);
  journal_.count_issued();
  return operation;
}

std::chrono::nanoseconds LiveOperations::timeout(const CallOptions& options) const {
  return options.timeout.count() > 0 ? options.timeout : default_timeout_;
}

Work LiveOperations::refuse(const Fingerprint& call, const Status& why) {
  Operation* operation = Operation::create(engine_);
  operation->kind = Operation::Kind::transfers;  // so that errors show no operation number
  operation->call = call;
  journal_.count_issued();
  Work work = Operation::handle(*operation);
  refuse(*operation, why);
  return work;
}

void LiveOperations::refuse(Operation& operation, const Status& why) {
  operation.finish(explain(operation, why));
  operation.release();
}

void LiveOperations::link(Operation& operation, Operation*& first) {
  operation.next = first;
  operation.previous = nullptr;
  if (first != nullptr) first->previous = &operation;
  first = &operation;
}

void LiveOperations::unlink(Operation& operation) {
  if (operation.next != nullptr) operation.next->previous = operation.previous;
  Operation*& first = operation.ending ? ending_ : newest_;
  (operation.previous != nullptr ? operation.previous->next : first) = operation.next;
}

void LiveOperations::begin(Operation& operation) {
  group_.stir();
  link(operation, newest_);
  journal_.begin(operation);
}

Work LiveOperations::keep(Operation& operation, const CallOptions& options) {
  operation.issued.store({}, std::memory_order_relaxed);
  operation.timeout = timeout(options);
  journal_.count_issued();
  Work work = Operation::handle(operation);
  begin(operation);
  return work;
}

void LiveOperations::end(Operation& operation, const Status& status) {
  journal_.end(operation, status);
  unlink(operation);
  operation.run.reset();
  operation.shared_schedule.reset();
  operation.registered_schedule.reset();
  operation.finish(explain(operation, status));
  operation.release();
}

// Giving up one operation may end others, or begin a new one in a callback. So each step takes the newest
// operation.
void LiveOperations::cancel_all(const Status& why) {
  while (newest_ != nullptr) give_up(*newest_, why);
}

void LiveOperations::give_up(Operation& operation, const Status& why) {
  unlink(operation);
  operation.ending = true;
  link(operation, ending_);
  journal_.give_up(operation);
  operation.cancel(why);
}

void LiveOperations::await_ending() {
  for (;;) {
    Operation* first = nullptr;
    {
      const DriverGuard guard(engine_->driver);
      if (ending_ == nullptr) return;
      first = ending_;
      first->retain();
    }
    const bool ended = first->wait(Deadline::never());
    first->release();
    if (!ended) return;  // the driver has failed, so nothing will end any more
  }
}

Status LiveOperations::explain(const Operation& operation, const Status& why) const {
  if (why.ok()) return why;
  const std::string here = members_.describe_this_rank() + ": ";
  // If this operation is the one that has timed out, the error describes it already.
  if (why.message().starts_with(here + operation.name())) return why;
  return why.with_context(here + operation.describe());
}

}  // namespace tutti
