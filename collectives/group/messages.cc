#include "collectives/group/group.h"

// Messages between two ranks as a user sends and receives them.
namespace tutti {

Work Group::transfers(CollectiveKind kind, std::span<const Transfer> legs, const CallOptions& options) {
  Fingerprint call;
  call.kind = kind;
  call.algorithm = static_cast<std::uint8_t>(part_of_);
  if (!legs.empty()) {
    call.type = legs.front().buffer.type;
    call.count = legs.front().buffer.count;
    call.root = legs.front().peer;
  }
  if (legs.size() == 1 && legs.front().direction == Transfer::Direction::send) {
    if (Work work; send_in_passing(legs.front(), call, options, work)) return work;
  }
  Operation* operation = prepare(Operation::Kind::transfers, call, options);
  std::size_t sends = 0;
  for (const Transfer& leg : legs) sends += leg.direction == Transfer::Direction::send ? 1 : 0;
  operation->sends.resize(sends);
  operation->recvs.resize(legs.size() - sends);
  std::size_t next_send = 0;
  std::size_t next_recv = 0;
  for (const Transfer& leg : legs) {
    if (leg.direction == Transfer::Direction::send) {
      bind(operation->sends[next_send++], leg, call, *operation);
    } else {
      bind(operation->recvs[next_recv++], leg, call, *operation);
    }
  }
  return launch(operation);
}

void Group::bind(Operation::SendLeg& node, const Transfer& leg, const Fingerprint& call, Operation& owner) {
  node = {};
  node.header.tag = {context_ | user_context_bit, 0, leg.tag};
  node.header.call = call;
  node.header.bytes = leg.buffer.bytes();
  node.data = static_cast<const std::byte*>(leg.buffer.data);
  node.world_rank = members_.world_rank(leg.peer);
  node.operation = &owner;
  node.done = [](SendOp& op, const Status& status) {
    auto& self = static_cast<Operation::SendLeg&>(op);
    self.posted = false;
    self.operation->group->leg_done(*self.operation, status);
  };
}

void Group::bind(Operation::RecvLeg& node, const Transfer& leg, const Fingerprint& call, Operation& owner) {
  node = {};
  node.tag = {context_ | user_context_bit, 0, leg.tag};
  node.any_tag = leg.tag == any_tag;
  node.peer = leg.peer == any_rank ? any_source : members_.world_rank(leg.peer);
  node.call = call;
  node.bytes = leg.buffer.bytes();
  node.sink.out = static_cast<std::byte*>(leg.buffer.data);
  node.operation = &owner;
  node.done = [](RecvOp& op, const Status& status) {
    auto& self = static_cast<Operation::RecvLeg&>(op);
    self.posted = false;
    Operation& operation = *self.operation;
    if (status.ok()) {
      operation.received = {operation.group->members_.rank_of(op.source), op.received.tag.sequence,
                            op.received.bytes};
    }
    operation.group->leg_done(operation, status);
  };
}

// Most small messages leave at once: the operation that was ready for one is ready for the next then, and
// `work` is left as it was (a default one is done).
bool Group::send_in_passing(const Transfer& leg, const Fingerprint& call, const CallOptions& options,
                            Work& work) {
  // What other threads have issued before must start before.
  if (posted_.load(std::memory_order_acquire) != 0 || !driver_.try_enter()) return false;
  if (shared_ != nullptr) listen();
  if (failure_.happened()) {
    driver_.leave();
    return false;
  }
  if (ready_send_ == nullptr) {
    ready_send_ = Operation::create(world_->engine);
    ready_send_->sends.resize(1);
  }
  Operation& operation = *ready_send_;
  operation.kind = Operation::Kind::transfers;
  operation.group = this;
  operation.call = call;
  operation.sequence = journal_.number_transfer();
  operation.legs_open = 2;  // one more than there are, as in `start_transfers`
  Operation::SendLeg& node = operation.sends.front();
  bind(node, leg, call, operation);
  node.posted = true;
  const History::Time began = journal_.beginning(operation.sequence);
  mesh_.send(node.world_rank, node);
  if (operation.legs_open == 1 && operation.leg_failure.ok()) {
    journal_.transfer_at_once(operation, leg.tag, began);
  } else {  // it is an operation like any other now
    ready_send_ = nullptr;
    operation.timeout = timeout(options);
    journal_.count_issued();
    work = Operation::handle(operation);
    enlist(operation);
    journal_.begin(operation);
    leg_done(operation, Status());
  }
  failure_.act();
  driver_.leave();
  return true;
}

void Group::start_transfers(Operation& operation) {
  // One more than there are, so that it cannot end while legs are still being posted.
  operation.legs_open = operation.sends.size() + operation.recvs.size() + 1;
  for (auto& node : operation.recvs) {
    node.posted = true;
    mesh_.recv(node);
  }
  for (auto& node : operation.sends) {
    node.posted = true;
    mesh_.send(node.world_rank, node);
  }
  leg_done(operation, Status());
}

void Group::leg_done(Operation& operation, const Status& status) {
  if (!status.ok() && operation.leg_failure.ok()) operation.leg_failure = first_cause(status);
  if (--operation.legs_open != 0) return;
  if (operation.leg_failure.code() == Code::peer_lost) suspect_failure(operation.leg_failure);
  // What is suspected now ends all operations once it is judged.
  if (operation.leg_failure.ok() || !failure_.suspects()) end(operation, operation.leg_failure);
}

}  // namespace tutti
