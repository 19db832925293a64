#include "collectives/run/staged_transfers.h"

#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include "transport/mesh/mesh.h"

namespace tutti {

void StagedTransfers::Order::leave(StagedTransfers& operation) {
  if (std::erase(waiting_, &operation) != 0) advance();
}

// Sending may end operations, and the callbacks of these may start others, which call `advance`, too.
void StagedTransfers::Order::advance() {
  while (StagedTransfers* const next = take_next()) next->send();
}

// An operation sends when its copies have ended and no earlier operation still has to send to the same peer.
StagedTransfers* StagedTransfers::Order::take_next() {
  std::set<int> busy;
  for (StagedTransfers* const operation : waiting_) {
    const std::vector<int> peers = operation->messages_->destinations();
    const bool waits = std::ranges::any_of(peers, [&busy](int peer) { return busy.contains(peer); });
    if (!waits && operation->stage_ == Stage::ready) {
      std::erase(waiting_, operation);
      return operation;
    }
    busy.insert(peers.begin(), peers.end());
  }
  return nullptr;
}

void StagedTransfers::prepare(Transfers& messages, Order& order, std::unique_ptr<StreamLink> link) {
  messages_ = &messages;
  order_ = &order;
  link_ = std::move(link);
  copies_.clear();
  copy_failed_ = cancelled_ = false;
  why_ = Status();
}

Status StagedTransfers::stage(Transfers::Send& message, Copier& copier) {
  Copy& copy = copies_.emplace_back();
  auto* const device = const_cast<std::byte*>(message.data);
  const Status staged = stage(copy, device, static_cast<std::size_t>(message.header.bytes), copier);
  message.data = copy.host;
  return staged;
}

Status StagedTransfers::stage(Transfers::Recv& message, Copier& copier) {
  Copy& copy = copies_.emplace_back();
  copy.to_device = true;
  copy.message = &message;
  const Status staged = stage(copy, message.sink.out, static_cast<std::size_t>(message.bytes), copier);
  message.sink.out = copy.host;
  return staged;
}

Status StagedTransfers::stage(Copy& copy, void* device, std::size_t bytes, Copier& copier) {
  copy.owner = this;
  copy.copier = &copier;
  copy.device = device;
  copy.bytes = bytes;
  copy.link = link_.get();
  copy.memory.reset(new (std::nothrow) std::byte[bytes]);
  copy.host = copy.memory.get();
  copy.done = [](CopyJob& job, const Status& status) {
    auto& self = static_cast<Copy&>(job);
    self.runs = false;
    self.owner->one_over(status);
  };
  if (copy.host != nullptr) return {};
  return Status(Code::resource_exhausted, "no memory of the host is left for a message of " +
                                              std::to_string(bytes) + " bytes in the memory of " +
                                              copier.name());
}

void StagedTransfers::clear() {
  copies_.clear();
  link_.reset();
}

void StagedTransfers::start(const RunBinding& binding) {
  binding_ = &binding;
  own_ = binding;
  own_.owner = this;
  own_.finished = [](void* self, const Status& status) {
    static_cast<StagedTransfers*>(self)->exchanged(status);
  };
  own_.failed = [](void* self, const Status& why) {
    const RunBinding& owner = *static_cast<StagedTransfers*>(self)->binding_;
    owner.failed(owner.owner, why);
  };
  stage_ = Stage::copying_to_host;
  order_->join(*this);
  messages_->start_receiving(own_);
  copy(false);
}

// A message may be shorter than the memory that receives it, or even empty.
void StagedTransfers::copy(bool to_device) {
  open_ = 1;
  for (Copy& copy : copies_) {
    if (copy.to_device != to_device) continue;
    if (copy.message != nullptr) copy.bytes = static_cast<std::size_t>(copy.message->received.bytes);
    if (copy.bytes == 0) continue;
    ++open_;
    copy.runs = true;
    copy.copier->start(copy);
  }
  if (open_ != 1) binding_->mesh->driver().wake();  // so that the device is asked even if no caller waits
  one_less();
}

void StagedTransfers::one_over(const Status& status) {
  if (!status.ok() && why_.ok()) {
    why_ = status;
    copy_failed_ = true;
  }
  one_less();
}

void StagedTransfers::one_less() {
  if (--open_ != 0) return;
  if (cancelled_) {
    if (stage_ == Stage::copying_to_device) return finish(why_);
    return send();  // nothing is sent, and the messages end
  }
  if (!why_.ok()) return binding_->failed(binding_->owner, why_);
  if (stage_ == Stage::copying_to_device) return finish(Status());
  stage_ = Stage::ready;
  order_->advance();
}

void StagedTransfers::send() {
  stage_ = Stage::exchanging;
  messages_->start_sending();
}

void StagedTransfers::exchanged(const Status& status) {
  if (!status.ok()) return finish(status);
  stage_ = Stage::copying_to_device;
  copy(true);
}

// Streams go on at once, since a copy that is under way may be queued behind them.
void StagedTransfers::cancel(const Status& why) {
  if (link_ != nullptr) link_->end();
  if (stage_ == Stage::exchanging) return messages_->cancel(why);
  cancelled_ = true;
  why_ = why;
  if (stage_ != Stage::copying_to_device) {
    order_->leave(*this);
    messages_->cancel(why);
  }
  open_ = 1 + static_cast<std::size_t>(std::ranges::count_if(copies_, &Copy::runs));
  for (Copy& copy : copies_) {
    if (copy.runs) copy.copier->cancel(copy, why);
  }
  one_less();
}

// The owner may use this object again before `finished` returns, and `status` may be a member of it.
void StagedTransfers::finish(const Status& status) {
  const Status ended = status;
  clear();
  binding_->finished(binding_->owner, ended);
}

std::vector<int> StagedTransfers::awaited() const { return messages_->awaited(); }

std::string_view StagedTransfers::awaited_library() const {
  const auto running = std::ranges::find_if(copies_, &Copy::runs);
  return running == copies_.end() ? std::string_view() : std::string_view(running->copier->name());
}

Result<StreamWait> StagedTransfers::wait_on(void* stream) {
  return link_ == nullptr ? Execution::wait_on(stream) : link_->wait_on(stream);
}

}  // namespace tutti
