#include "collectives/run/run.h"

#include <algorithm>

#include "collectives/run/compute_step.h"

namespace tutti {

Run::Run(const Schedule& schedule) : schedule_(schedule), states_(schedule.steps.size()) {
  std::uint32_t sends = 0;
  std::uint32_t recvs = 0;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const StepKind kind = schedule.steps[i].kind;
    if (kind == StepKind::send) states_[i].node = sends++;
    if (kind == StepKind::recv || kind == StepKind::recv_reduce) states_[i].node = recvs++;
  }
  sends_ = std::vector<SendNode>(sends);
  recvs_ = std::vector<RecvNode>(recvs);
  ready_.reserve(states_.size());
}

void Run::start(const RunBinding& binding) {
  binding_ = binding;
  element_size_ = size_of(binding.reducer.type);
  for (std::size_t i = 0; i < states_.size(); ++i) states_[i].waiting_for = schedule_.steps[i].dependencies;
  ready_.assign(schedule_.ready.begin(), schedule_.ready.end());
  next_ready_ = completed_ = 0;
  failed_ = cancelled_ = false;
  if (!scratch_.provide(schedule_.scratch_count * element_size_)) return fail(Scratch::exhausted());
  buffers_ = Buffers(binding.input, binding.output, scratch_.data(), nullptr);
  drain();
}

// Steps become ready in the middle of other steps, and in callbacks. The outermost call of `drain` executes
// all of them, one after the other. So the stack stays flat, and the run reports its end only after the last
// step.
void Run::drain() {
  if (draining_) return;
  draining_ = true;
  while (next_ready_ < ready_.size() && !failed_) execute(ready_[next_ready_++]);
  draining_ = false;
  if (failed_) {
    cancelled_ ? settle() : report_failure();
  } else if (completed_ == states_.size()) {
    binding_.finished(binding_.owner, Status());
  }
}

void Run::execute(std::uint32_t index) {
  const Step& step = schedule_.steps[index];
  switch (step.kind) {
    case StepKind::send:
      post_send(step, index);
      break;
    case StepKind::recv:
    case StepKind::recv_reduce:
      post_recv(step, index);
      break;
    default:
      compute_step(step, step.out.count, step.out.count * element_size_, binding_,
                   [this](const Slice& slice) { return address(slice); });
      if (binding_.reducer.failed()) return fail(*binding_.reducer.failure);
      complete(index);
  }
}

void Run::post_send(const Step& step, std::uint32_t index) {
  SendNode& node = sends_[states_[index].node];
  static_cast<SendOp&>(node) = SendOp{};
  node.header = {
      {binding_.context, step.index, binding_.sequence}, binding_.call, step.left.count * element_size_};
  node.data = address(step.left);
  node.run = this;
  node.step = index;
  node.posted = true;
  node.done = [](SendOp& op, const Status& status) {
    auto& self = static_cast<SendNode&>(op);
    self.posted = false;
    self.run->message_done(self.step, status);
  };
  binding_.mesh->send(binding_.ranks[static_cast<std::size_t>(step.peer)], node);
}

void Run::post_recv(const Step& step, std::uint32_t index) {
  RecvNode& node = recvs_[states_[index].node];
  static_cast<RecvOp&>(node) = RecvOp{};
  node.tag = {binding_.context, step.index, binding_.sequence};
  node.call = binding_.call;
  node.peer = binding_.ranks[static_cast<std::size_t>(step.peer)];
  node.bytes = step.out.count * element_size_;
  node.sink.out = address(step.out);
  if (step.kind == StepKind::recv_reduce) {
    node.sink.local = address(step.left);
    node.sink.reducer = &binding_.reducer;
    node.sink.side = step.message_side;
  }
  node.run = this;
  node.step = index;
  node.posted = true;
  node.done = [](RecvOp& op, const Status& status) {
    auto& self = static_cast<RecvNode&>(op);
    self.posted = false;
    self.run->message_done(self.step, status);
  };
  binding_.mesh->recv(node);
}

void Run::complete(std::uint32_t index) {
  ++completed_;
  for (const std::uint32_t successor : schedule_.successors_of(schedule_.steps[index])) {
    if (--states_[successor].waiting_for == 0) ready_.push_back(successor);
  }
}

void Run::message_done(std::uint32_t index, const Status& status) {
  if (cancelled_) {
    --posted_;
    return settle();
  }
  if (failed_) return;
  // If the user's reduction threw an exception on this rank, that is the cause of the failure, even if a
  // message was lost, too.
  if (binding_.reducer.failed()) return fail(*binding_.reducer.failure);
  if (!status.ok()) return fail(status);
  complete(index);
  drain();
}

void Run::fail(const Status& why) {
  failed_ = true;
  why_ = why;
  if (!draining_) report_failure();
}

// Passes a copy of the reason, since the owner may cancel the run, and so end it, before it uses the reason.
void Run::report_failure() {
  const Status why = why_;
  binding_.failed(binding_.owner, why);
}

void Run::cancel(const Status& why) {
  failed_ = cancelled_ = true;
  why_ = why;
  const auto is_posted = [](const auto& node) { return node.posted; };
  // This call counts as one more message, so that the run does not end before every message has been
  // cancelled.
  posted_ = 1 + static_cast<std::size_t>(std::ranges::count_if(sends_, is_posted) +
                                         std::ranges::count_if(recvs_, is_posted));
  for (SendNode& node : sends_) {
    if (!node.posted) continue;
    const Step& step = schedule_.steps[node.step];
    binding_.mesh->cancel(node, binding_.ranks[static_cast<std::size_t>(step.peer)], why);
  }
  for (RecvNode& node : recvs_) {
    if (node.posted) binding_.mesh->cancel(node, why);
  }
  --posted_;
  settle();
}

// Reports the end of a cancelled run once no message is posted any more.
void Run::settle() {
  if (posted_ != 0 || draining_) return;
  const Status why = std::move(why_);  // the owner may destroy the run before it uses the reason
  binding_.finished(binding_.owner, why);
}

std::vector<int> Run::awaited() const {
  std::vector<int> ranks;
  for (const RecvNode& node : recvs_) {
    if (node.posted)
      ranks.push_back(binding_.ranks[static_cast<std::size_t>(schedule_.steps[node.step].peer)]);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace tutti
