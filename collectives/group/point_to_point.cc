#include "collectives/group/point_to_point.h"

#include <algorithm>
#include <utility>

#include "collectives/arguments.h"

namespace tutti {

namespace {

Fingerprint fingerprint(const Transfer& leg, CollectiveKind kind, Composite part_of) {
  return {
      .kind = kind, .type = leg.buffer.type, .root = leg.peer, .part_of = part_of, .count = leg.buffer.count};
}

CollectiveKind kind_of(std::span<const Transfer> legs) {
  const bool sends = !legs.empty() && legs.front().direction == Transfer::Direction::send;
  return sends ? CollectiveKind::send : CollectiveKind::recv;
}

}  // namespace

PointToPoint::~PointToPoint() {
  if (ready_send_ != nullptr) ready_send_->release();
}

// The first leg names the operation in errors and dumps.
Work PointToPoint::issue(std::span<const Transfer> legs, const CallOptions& options) {
  const CollectiveKind kind = kind_of(legs);
  for (const Transfer& leg : legs) {
    const Status status = parts_.gate.is_forked() ? forked_child() : check(leg, parts_.members.size());
    if (!status.ok()) return parts_.live.refuse(fingerprint(leg, kind, parts_.part_of), status);
  }
  const Fingerprint call = legs.empty() ? Fingerprint{.kind = kind, .part_of = parts_.part_of}
                                        : fingerprint(legs.front(), kind, parts_.part_of);
  return launch(legs, call, options);
}

Work PointToPoint::issue_own(std::span<const Transfer> legs, Composite part_of, const CallOptions& options) {
  return launch(legs, {.kind = kind_of(legs), .part_of = part_of}, options);
}

Work PointToPoint::launch(std::span<const Transfer> legs, const Fingerprint& call,
                          const CallOptions& options) {
  if (legs.size() == 1 && legs.front().direction == Transfer::Direction::send) {
    if (Work work; send_in_passing(legs.front(), call, options, work)) return work;
  }
  Operation& operation = *parts_.live.make(*this, Operation::Kind::transfers, call, options);
  std::size_t send_count = 0;
  for (const Transfer& leg : legs) send_count += leg.direction == Transfer::Direction::send ? 1 : 0;
  operation.sends.resize(send_count);
  operation.recvs.resize(legs.size() - send_count);
  std::size_t next_send = 0;
  std::size_t next_recv = 0;
  for (const Transfer& leg : legs) {
    if (leg.direction == Transfer::Direction::send) {
      bind(operation.sends[next_send++], leg, call, operation);
    } else {
      bind(operation.recvs[next_recv++], leg, call, operation);
    }
  }
  return parts_.gate.launch(operation);
}

void PointToPoint::bind(Operation::SendLeg& node, const Transfer& leg, const Fingerprint& call,
                        Operation& owner) {
  node = {};
  node.header.tag = {parts_.context | user_context_bit, 0, leg.tag};
  node.header.call = call;
  node.header.bytes = leg.buffer.bytes();
  node.data = static_cast<const std::byte*>(leg.buffer.data);
  node.world_rank = parts_.members.world_rank(leg.peer);
  node.operation = &owner;
  node.done = [](SendOp& op, const Status& status) {
    auto& self = static_cast<Operation::SendLeg&>(op);
    self.posted = false;
    static_cast<PointToPoint*>(self.operation->owner)->on_part_over(*self.operation, status);
  };
}

void PointToPoint::bind(Operation::RecvLeg& node, const Transfer& leg, const Fingerprint& call,
                        Operation& owner) {
  node = {};
  node.tag = {parts_.context | user_context_bit, 0, leg.tag};
  node.any_tag = leg.tag == any_tag;
  node.peer = leg.peer == any_rank ? any_source : parts_.members.world_rank(leg.peer);
  node.call = call;
  node.bytes = leg.buffer.bytes();
  node.sink.out = static_cast<std::byte*>(leg.buffer.data);
  node.operation = &owner;
  node.done = [](RecvOp& op, const Status& status) {
    auto& self = static_cast<Operation::RecvLeg&>(op);
    self.posted = false;
    Operation& operation = *self.operation;
    auto& transfers = *static_cast<PointToPoint*>(operation.owner);
    if (status.ok()) {
      operation.received = {transfers.parts_.members.rank_of(op.source), op.received.tag.sequence,
                            op.received.bytes};
    }
    transfers.on_part_over(operation, status);
  };
}

// Most small messages are sent at once. Then `work` is left unchanged (a default `Work` counts as done), and
// the prepared operation is used again for the next message.
bool PointToPoint::send_in_passing(const Transfer& leg, const Fingerprint& call, const CallOptions& options,
                                   Work& work) {
  if (!parts_.gate.enter_in_passing()) return false;
  if (ready_send_ == nullptr) {
    ready_send_ = parts_.live.make_passing(*this, Operation::Kind::transfers);
    ready_send_->sends.resize(1);
  }
  Operation& operation = *ready_send_;
  operation.call = call;
  operation.sequence = parts_.journal.number_transfer();
  operation.legs_open = 2;  // one more than the number of legs, as in `start`
  Operation::SendLeg& node = operation.sends.front();
  bind(node, leg, call, operation);
  node.posted = true;
  const History::Time began = parts_.journal.beginning(operation.sequence);
  parts_.mesh.send(node.world_rank, node);
  if (operation.legs_open == 1 && operation.leg_failure.ok()) {
    parts_.journal.transfer_at_once(operation, leg.tag, began);
  } else {
    ready_send_ = nullptr;
    work = parts_.live.keep(operation, options);
    on_part_over(operation, Status());
  }
  parts_.gate.leave();
  return true;
}

void PointToPoint::start(Operation& operation) {
  // The count is one more than the number of legs, so that the operation cannot end while legs are still
  // being posted.
  operation.legs_open = operation.sends.size() + operation.recvs.size() + 1;
  for (auto& node : operation.recvs) {
    node.posted = true;
    parts_.mesh.recv(node);
  }
  for (auto& node : operation.sends) {
    node.posted = true;
    parts_.mesh.send(node.world_rank, node);
  }
  on_part_over(operation, Status());
}

void PointToPoint::on_part_over(Operation& operation, const Status& status) {
  if (!status.ok() && operation.leg_failure.ok()) operation.leg_failure = parts_.shared.first_cause(status);
  if (--operation.legs_open != 0) return;
  if (operation.leg_failure.code() == Code::peer_lost) parts_.failure.suspect(operation.leg_failure);
  // If `suspect` has started a suspicion, this operation ends when the suspicion is confirmed, together with
  // all others.
  if (operation.leg_failure.ok() || !parts_.failure.suspects())
    parts_.live.end(operation, operation.leg_failure);
}

void PointToPoint::cancel(Operation& operation, const Status& why) {
  if (operation.legs_open == 0) {  // all legs have ended, and only the cause was missing
    parts_.live.end(operation, why);
    return;
  }
  // The last leg that is cancelled ends the operation.
  operation.retain();
  operation.leg_failure = why;
  for (auto& node : operation.sends) {
    if (node.posted) parts_.mesh.cancel(node, node.world_rank, why);
  }
  for (auto& node : operation.recvs) {
    if (node.posted) parts_.mesh.cancel(node, why);
  }
  operation.release();
}

std::vector<int> PointToPoint::awaited(const Operation& operation) const {
  std::vector<int> ranks;
  for (const auto& node : operation.recvs) {
    if (node.posted && node.peer != any_source) ranks.push_back(node.peer);
  }
  for (const auto& node : operation.sends) {
    if (node.posted) ranks.push_back(node.world_rank);
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::string PointToPoint::name_awaited(const Operation& operation) const {
  std::string names;
  for (const auto& node : operation.recvs) {
    if (!node.posted || node.peer == any_source) continue;
    names += (names.empty() ? "" : ", ") + parts_.members.describe_world_rank(node.peer);
  }
  return names;
}

}  // namespace tutti
