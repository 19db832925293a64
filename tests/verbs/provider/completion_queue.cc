#include "tests/verbs/provider/completion_queue.h"

namespace tutti::provider {

bool CompletionQueue::add(const ibv_wc& completion, const Freed& freed, bool solicited) {
  if (entries_.size() >= static_cast<std::size_t>(cqe)) return false;
  entries_.push_back({completion, freed});
  const bool counts = wanted_ == Wanted::any ||
                      (wanted_ == Wanted::solicited && (solicited || completion.status != IBV_WC_SUCCESS));
  if (counts && channel != nullptr) {
    wanted_ = Wanted::nothing;
    static_cast<CompletionChannel*>(channel)->events.add(this);
  }
  return true;
}

bool CompletionQueue::take(ibv_wc& completion, Freed& freed) {
  if (entries_.empty()) return false;
  completion = entries_.front().completion;
  freed = entries_.front().freed;
  entries_.pop_front();
  return true;
}

void CompletionQueue::request_event(bool only_solicited) {
  // A request for solicited completions does not replace a request for all completions.
  if (only_solicited && wanted_ == Wanted::any) return;
  wanted_ = only_solicited ? Wanted::solicited : Wanted::any;
}

}  // namespace tutti::provider
