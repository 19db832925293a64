#include "transport/mesh/state.h"

namespace tutti {
namespace {

Status no_context() { return Status(Code::aborted, "the communicator is closed"); }

Status no_rank(int rank, int size) {
  return Status(Code::invalid_argument,
                "rank " + std::to_string(rank) + " is not among " + std::to_string(size) + " ranks");
}

}  // namespace

void Mesh::send(int peer_rank, SendOp& op) {
  if (state_->attached(context_of(op.header.tag)) == nullptr) {
    op.done(op, no_context());
  } else if (peer_rank < 0 || peer_rank >= size()) {
    op.done(op, no_rank(peer_rank, size()));
  } else if (Channel* channel = open(peer_rank); channel != nullptr && peer_status(peer_rank).ok()) {
    channel->send(op);
  } else {
    op.done(op, peer_status(peer_rank));
  }
}

void Mesh::recv(RecvOp& op) {
  op.channel = nullptr;
  op.state = idle;
  const std::uint32_t context = context_of(op.tag);
  ContextTable* table = state_->attached(context);
  const bool any = op.peer == any_source && is_user(op.tag);
  if (table == nullptr) {
    op.done(op, no_context());
  } else if (!any && (op.peer < 0 || op.peer >= size())) {
    op.done(op, no_rank(op.peer, size()));
  } else if (Arrival* arrival = table->find_kept(op)) {
    table->unkeep(*arrival);
    deliver(context, op, *arrival);
  } else if (!any && !peer_status(op.peer).ok()) {
    op.done(op, peer_status(op.peer));
  } else {
    op.state = posted;
    table->post(op);
    if (!any) expect(op.peer);
  }
}

// Connects to a peer for which a receive waits. Otherwise this rank would not notice if the peer died before
// connecting.
void Mesh::expect(int peer_rank) {
  State::Peer& entry = state_->peers[static_cast<std::size_t>(peer_rank)];
  if (entry.awaited) return;
  entry.awaited = true;
  if (Channel* channel = open(peer_rank); channel != nullptr) channel->connect();
}

void Mesh::cancel(SendOp& op, int peer_rank, const Status& why) {
  Channel* channel = state_->peers[static_cast<std::size_t>(peer_rank)].channel.get();
  if (channel != nullptr) channel->cancel_send(op, why);
}

void Mesh::cancel(RecvOp& op, const Status& why) {
  if (op.state == claimed) {
    if (op.channel != nullptr) op.channel->cancel_recv(op, why);
    return;
  }
  if (op.state == idle) return;
  if (op.state == failing) {
    state_->failing.remove(op);
  } else {
    state_->find(context_of(op.tag))->unpost(op);
  }
  op.state = idle;
  op.done(op, why);
}

// Gives a receive the message that has been waiting for it.
void Mesh::deliver(std::uint32_t context, RecvOp& op, Arrival& arrival) {
  if (!is_user(op.tag) && arrival.header.call != op.call) {
    report(context, arrival, {&op.call, false}, &op);
    return;
  }
  if (!length_fits(context, op, arrival)) return;
  op.state = claimed;
  arrival.channel->claim(arrival, op);
}

void Mesh::compare_early(std::uint32_t context, std::uint64_t sequence) {
  ContextTable* table = state_->attached(context);
  if (table == nullptr) return;
  while (Arrival* arrival = table->find_early(sequence)) {
    const ContextEvents::Known known = table->events->operation(sequence);
    if (known.call == nullptr && !known.finished) return;
    table->compared(*arrival);
    if (known.finished || *known.call != arrival->header.call) {
      // The loop ends at the first mismatch: `report` makes the communicator fail, and the communicator may
      // even be destroyed.
      table->unkeep(*arrival);
      report(context, *arrival, known, nullptr);
      return;
    }
  }
}

// --- events of channels ---

RecvOp* Mesh::on_arrival(Arrival& arrival) {
  const std::uint32_t context = context_of(arrival.header.tag);
  if (state_->find_or_make(context) == nullptr) {
    arrival.channel->discard(arrival);
    return nullptr;
  }
  return is_user(arrival.header.tag) ? match_user(context, arrival) : match_collective(context, arrival);
}

void Mesh::on_withdrawn(Arrival& arrival) {
  const std::uint32_t context = context_of(arrival.header.tag);
  ContextTable* table = state_->find(context);
  table->unkeep(arrival);
  // A context that is not attached and holds nothing is removed, so that a peer cannot fill the table with
  // contexts that it made up.
  if (table->events == nullptr && !table->detaching && table->kept() == 0) state_->erase(context);
}

RecvOp* Mesh::match_user(std::uint32_t context, Arrival& arrival) {
  ContextTable* table = state_->find(context);
  RecvOp* op = table->find_posted(arrival.peer, arrival.header.tag);
  if (op == nullptr) {
    table->keep(arrival, false);
    return nullptr;
  }
  table->unpost(*op);
  op->state = idle;
  if (!length_fits(context, *op, arrival)) return nullptr;
  op->state = claimed;
  return op;
}

RecvOp* Mesh::match_collective(std::uint32_t context, Arrival& arrival) {
  ContextTable* table = state_->find(context);
  const MessageHeader& header = arrival.header;
  ContextEvents::Known known;
  if (table->events != nullptr) known = table->events->operation(header.tag.sequence);
  if (known.call == nullptr && !known.finished) {
    table->keep(arrival, true);
    return nullptr;
  }
  if (known.finished || *known.call != header.call) {
    report(context, arrival, known, nullptr);
    return nullptr;
  }
  RecvOp* op = table->find_posted(arrival.peer, header.tag);
  if (op == nullptr) {
    table->keep(arrival, false);
    return nullptr;
  }
  table->unpost(*op);
  op->state = idle;
  if (!length_fits(context, *op, arrival)) return nullptr;
  op->state = claimed;
  return op;
}

std::string Mesh::describe(std::uint32_t context, const Fingerprint& call) const {
  const ContextTable* table = state_->attached(context);
  return table != nullptr ? table->events->describe(call) : to_string(call);
}

// Returns whether the message's length fits: a collective's message must be exactly as long as the receive,
// and a user message at most as long. If the length does not fit, the message is discarded and the receive
// fails. `op` has then ended.
bool Mesh::length_fits(std::uint32_t context, RecvOp& op, Arrival& arrival) {
  const MessageHeader header = arrival.header;
  const int from = arrival.peer;
  const bool user = is_user(header.tag);
  if (user ? header.bytes <= op.bytes : header.bytes == op.bytes) return true;
  std::string text = peer(from).describe() + " sent " + std::to_string(header.bytes) + " bytes ";
  if (user) {
    text += "with tag " + std::to_string(header.tag.sequence) + ", where the receive has room for " +
            std::to_string(op.bytes);
  } else {
    text += "in operation " + std::to_string(header.tag.sequence) + ", " + describe(context, header.call) +
            ", where " + peer(rank()).describe() + " expects " + std::to_string(op.bytes);
  }
  const Status why(Code::mismatch, text, from);
  op.source = from;
  op.received = header;
  arrival.channel->discard(arrival);
  op.done(op, why);
  if (user) return false;
  if (ContextTable* table = state_->attached(context))
    table->events->on_mismatch(from, header.tag.sequence, nullptr, why);
  return false;
}

// Handles a message that does not belong to the local operation with the same number. Discards the message,
// notifies the communicator, and fails `op` (the receive that the message matched) unless it is null.
void Mesh::report(std::uint32_t context, Arrival& arrival, const ContextEvents::Known& known, RecvOp* op) {
  const int from = arrival.peer;
  const std::uint64_t sequence = arrival.header.tag.sequence;
  const Fingerprint theirs = arrival.header.call;
  const bool differs = known.call != nullptr && *known.call != theirs;
  const std::string number = std::to_string(sequence);
  std::string text = peer(from).describe();
  if (differs) {
    text += " called " + describe(context, theirs) + " as operation " + number + ", where " +
            peer(rank()).describe() + " called " + describe(context, *known.call);
  } else {
    text += " sent a message in operation " + number + ", " + describe(context, theirs) + ", which " +
            peer(rank()).describe() + " had already finished without this message";
  }
  const Status why(Code::mismatch, text, differs ? -1 : from);
  arrival.channel->discard(arrival);
  // The communicator is notified before the receive fails, since it may find out more about the mismatch.
  // Otherwise the communicator would fail with the receive's less detailed status.
  if (ContextTable* table = state_->attached(context))
    table->events->on_mismatch(from, sequence, differs ? &theirs : nullptr, why);
  if (op != nullptr) op->done(*op, why);
}

}  // namespace tutti
