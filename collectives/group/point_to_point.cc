#include "collectives/group/point_to_point.h"

#include <algorithm>
#include <utility>

#include "collectives/arguments.h"

namespace tutti {

namespace {

Fingerprint fingerprint(const Transfer& leg, CollectiveKind kind, Composite part_of) {
  return {.kind = kind,
          .type = leg.buffer.type,
          .root = leg.peer,
          .on_device = leg.buffer.memory != Memory(),
          .part_of = part_of,
          .count = leg.buffer.count};
}

CollectiveKind kind_of(std::span<const Transfer> legs) {
  const bool sends = !legs.empty() && legs.front().direction == Transfer::Direction::send;
  return sends ? CollectiveKind::send : CollectiveKind::recv;
}

bool is_on_device(const Transfer& leg) { return leg.buffer.memory != Memory(); }

// Returns the execution that stages the messages of the operation.
StagedTransfers& staged_transfers(Operation& operation) {
  if (operation.staged == nullptr) operation.staged = std::make_unique<StagedTransfers>();
  operation.execution = operation.staged.get();
  return *operation.staged;
}

}  // namespace

PointToPoint::~PointToPoint() {
  if (ready_send_ != nullptr) ready_send_->release();
}

// The first of the transfers (`legs`) gives the operation its name in errors and dumps.
Work PointToPoint::issue(std::span<const Transfer> legs, const CallOptions& options) {
  const CollectiveKind kind = kind_of(legs);
  for (const Transfer& leg : legs) {
    const Status status = parts_.gate.is_forked() ? forked_child() : check(leg, parts_.members.size());
    if (!status.ok()) return parts_.live.refuse(fingerprint(leg, kind, parts_.part_of), status);
  }
  const Fingerprint call = legs.empty() ? Fingerprint{.kind = kind, .part_of = parts_.part_of}
                                        : fingerprint(legs.front(), kind, parts_.part_of);
  if (options.stream != nullptr && std::ranges::none_of(legs, is_on_device))
    return parts_.live.refuse(call, useless_stream(no_messages));
  if (options.region != nullptr) return parts_.live.refuse(call, useless_region());
  return launch(legs, call, options);
}

Work PointToPoint::issue_own(std::span<const Transfer> legs, Composite part_of, const CallOptions& options) {
  return launch(legs, {.kind = kind_of(legs), .part_of = part_of}, options);
}

Work PointToPoint::launch(std::span<const Transfer> legs, const Fingerprint& call,
                          const CallOptions& options) {
  const bool staged = std::ranges::any_of(legs, is_on_device);
  if (!staged && legs.size() == 1 && legs.front().direction == Transfer::Direction::send) {
    if (Work work; send_in_passing(legs.front(), call, options, work)) return work;
  }
  Operation& operation = *parts_.live.make(*this, Operation::Kind::transfers, call, options);
  operation.bind(parts_.mesh);
  operation.execution = &operation.transfers;
  bind(operation, legs);
  if (staged) {
    const Status staging = stage(operation, legs, options.stream);
    if (!staging.ok()) return refuse_staged(operation, staging);
  }
  return parts_.gate.launch(operation);
}

void PointToPoint::bind(Operation& operation, std::span<const Transfer> legs) {
  std::size_t send_count = 0;
  for (const Transfer& leg : legs) send_count += leg.direction == Transfer::Direction::send ? 1 : 0;
  operation.transfers.prepare(send_count, legs.size() - send_count);
  std::size_t next_send = 0;
  std::size_t next_recv = 0;
  for (const Transfer& leg : legs) {
    if (leg.direction == Transfer::Direction::send) {
      bind(operation.transfers.send(next_send++), leg, operation.call);
    } else {
      bind(operation.transfers.recv(next_recv++), leg, operation.call);
    }
  }
}

// All messages follow the stream, which must be of the first device.
Status PointToPoint::stage(Operation& operation, std::span<const Transfer> legs, void* stream) {
  StagedTransfers& staged = staged_transfers(operation);
  const Result<Copier*> first = copiers_.get(std::ranges::find_if(legs, is_on_device)->buffer.memory);
  if (!first.ok()) return first.status();
  Result<std::unique_ptr<StreamLink>> link = (*first)->link(stream);
  if (!link.ok()) return link.status();
  staged.prepare(operation.transfers, order_, std::move(link).take());
  std::size_t next_send = 0;
  std::size_t next_recv = 0;
  for (const Transfer& leg : legs) {
    const bool sends = leg.direction == Transfer::Direction::send;
    const std::size_t index = sends ? next_send++ : next_recv++;
    if (!is_on_device(leg)) continue;
    const Result<Copier*> copier = copiers_.get(leg.buffer.memory);
    if (!copier.ok()) return copier.status();
    if (leg.buffer.bytes() == 0) continue;
    const Status status = sends ? staged.stage(operation.transfers.send(index), **copier)
                                : staged.stage(operation.transfers.recv(index), **copier);
    if (!status.ok()) return status;
  }
  return {};
}

// If a device has failed, the communicator fails, since the peers wait for the messages.
Work PointToPoint::refuse_staged(Operation& operation, const Status& why) {
  Work work = Operation::handle(operation);
  operation.staged->clear();
  if (why.code() == Code::aborted) parts_.gate.abort(blamed(why));
  parts_.live.refuse(operation, why);
  return work;
}

// Returns the error of a device as the error that all members get.
Status PointToPoint::blamed(const Status& why) const {
  return Status(why.code(), parts_.members.describe_this_rank() + ": " + why.message(),
                parts_.members.own_world_rank());
}

void PointToPoint::bind(Transfers::Send& node, const Transfer& leg, const Fingerprint& call) const {
  node.header.tag = {parts_.context | user_context_bit, 0, leg.tag};
  node.header.call = call;
  node.header.bytes = leg.buffer.bytes();
  node.data = static_cast<const std::byte*>(leg.buffer.data);
  node.peer = parts_.members.world_rank(leg.peer);
}

void PointToPoint::bind(Transfers::Recv& node, const Transfer& leg, const Fingerprint& call) const {
  node.tag = {parts_.context | user_context_bit, 0, leg.tag};
  node.any_tag = leg.tag == any_tag;
  node.peer = leg.peer == any_rank ? any_source : parts_.members.world_rank(leg.peer);
  node.call = call;
  node.bytes = leg.buffer.bytes();
  node.sink.out = static_cast<std::byte*>(leg.buffer.data);
}

// Most small messages are sent at once. In that case `work` is left unchanged (a default `Work` counts as
// done), and the prepared operation is used again for the next message. A message that must wait for the
// copies of earlier ones is not sent in passing.
bool PointToPoint::send_in_passing(const Transfer& leg, const Fingerprint& call, const CallOptions& options,
                                   Work& work) {
  if (!parts_.gate.enter_in_passing()) return false;
  if (!order_.empty()) {
    parts_.gate.leave();
    return false;
  }
  if (ready_send_ == nullptr) {
    ready_send_ = parts_.live.make_passing(*this, Operation::Kind::transfers);
    ready_send_->bind(parts_.mesh);
  }
  Operation& operation = *ready_send_;
  operation.call = call;
  operation.sequence = parts_.journal.number_transfer();
  operation.transfers.prepare(1, 0);
  bind(operation.transfers.send(0), leg, call);
  const History::Time began = parts_.journal.beginning(operation.sequence);
  if (operation.transfers.start_in_passing(operation.binding)) {
    parts_.journal.transfer_at_once(operation, leg.tag, began);
  } else {
    ready_send_ = nullptr;
    operation.execution = &operation.transfers;
    operation.executing = true;
    work = parts_.live.keep(operation, options);
    operation.transfers.go_on();
  }
  parts_.gate.leave();
  return true;
}

void PointToPoint::start(Operation& operation) {
  if (operation.execution == &operation.transfers && !order_.empty())
    staged_transfers(operation).prepare(operation.transfers, order_, nullptr);
  operation.execute();
}

// At this point, all messages of the operation have ended, unless a device has failed to copy. If this rank
// suspects that a peer is lost, the operation does not end here. It ends together with all others when the
// suspicion is confirmed. If a device has failed, the communicator fails, since the peers wait for messages.
void PointToPoint::on_failed(Operation& operation, const Status& why) {
  if (operation.execution != &operation.transfers && operation.staged->copy_failed()) {
    return parts_.failure.note(blamed(why));
  }
  const Status cause = parts_.shared.first_cause(why);
  if (cause.code() == Code::peer_lost) parts_.failure.suspect(cause);
  if (!parts_.failure.suspects()) operation.cancel(cause);
}

void PointToPoint::on_finished(Operation& operation, const Status& status) {
  const Transfers::Received& received = operation.transfers.received();
  if (status.ok() && received.source >= 0)
    operation.received = {parts_.members.rank_of(received.source), received.tag, received.bytes};
  parts_.live.end(operation, status);
}

}  // namespace tutti
