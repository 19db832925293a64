#include "collectives/run/transfers.h"

#include <algorithm>
#include <utility>

#include "transport/mesh/mesh.h"

namespace tutti {

void Transfers::prepare(std::size_t sends, std::size_t recvs) {
  sends_.assign(sends, {});
  recvs_.assign(recvs, {});
  why_ = Status();
  received_ = {};
  cancelled_ = false;
  for (Send& node : sends_) {
    node.transfers = this;
    node.done = [](SendOp& op, const Status& status) {
      auto& self = static_cast<Send&>(op);
      self.posted = false;
      self.transfers->one_over(status);
    };
  }
  for (Recv& node : recvs_) {
    node.transfers = this;
    node.done = [](RecvOp& op, const Status& status) {
      auto& self = static_cast<Recv&>(op);
      self.posted = false;
      if (status.ok()) self.transfers->received_ = {op.source, op.received.tag.sequence, op.received.bytes};
      self.transfers->one_over(status);
    };
  }
}

void Transfers::start(const RunBinding& binding) {
  start_receiving(binding);
  start_sending();
}

void Transfers::start_receiving(const RunBinding& binding) {
  binding_ = &binding;
  post_receives();
}

void Transfers::start_sending() {
  if (!cancelled_) post_sends();
  one_less();
}

bool Transfers::start_in_passing(const RunBinding& binding) {
  binding_ = &binding;
  open_ = 1;
  post_sends();
  return open_ == 1 && why_.ok();
}

// `open_` counts one more than the messages, so that nothing is reported before the caller has called
// `one_less`, even if all messages end earlier.
void Transfers::post_receives() {
  open_ = recvs_.size() + 1;
  for (Recv& node : recvs_) {
    node.posted = true;
    binding_->mesh->recv(node);
  }
}

void Transfers::post_sends() {
  open_ += sends_.size();
  for (Send& node : sends_) {
    node.posted = true;
    binding_->mesh->send(node.peer, node);
  }
}

void Transfers::one_over(const Status& status) {
  if (!status.ok() && why_.ok()) why_ = status;
  one_less();
}

void Transfers::one_less() {
  if (--open_ != 0) return;
  const Status why = why_;  // the owner may use this object again before it uses the reason
  if (why.ok() || cancelled_) {
    binding_->finished(binding_->owner, why);
  } else {
    binding_->failed(binding_->owner, why);
  }
}

void Transfers::cancel(const Status& why) {
  cancelled_ = true;
  why_ = why;
  ++open_;
  for (Send& node : sends_) {
    if (node.posted) binding_->mesh->cancel(node, node.peer, why);
  }
  for (Recv& node : recvs_) {
    if (node.posted) binding_->mesh->cancel(node, why);
  }
  one_less();
}

std::vector<int> Transfers::destinations() const {
  std::vector<int> ranks;
  for (const Send& node : sends_) ranks.push_back(node.peer);
  return ranks;
}

std::uint64_t Transfers::tag() const {
  if (!recvs_.empty()) return recvs_.front().tag.sequence;
  return sends_.empty() ? 0 : sends_.front().header.tag.sequence;
}

std::vector<int> Transfers::awaited() const {
  std::vector<int> ranks;
  for (const Recv& node : recvs_) {
    if (node.posted && node.peer != any_source) ranks.push_back(node.peer);
  }
  for (const Send& node : sends_) {
    if (node.posted) ranks.push_back(node.peer);
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace tutti
