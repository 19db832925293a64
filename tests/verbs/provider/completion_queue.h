#pragma once

#include <cstdint>
#include <deque>

#include <infiniband/verbs.h>

#include "tests/verbs/provider/event_queue.h"

namespace tutti::provider {

class CompletionQueue;
class QueuePair;

// A `CompletionChannel` tells a sleeping program which completion queues have news.
struct CompletionChannel : ibv_comp_channel {
  EventQueue<CompletionQueue*> events;
};

// A `CompletionQueue` holds completions until they are polled. A work request occupies its queue until its
// completion is polled. So a completion also says how many requests it frees.
class CompletionQueue : public ibv_cq {
 public:
  struct Freed {
    std::uint32_t pair = 0;  // the number of the queue pair, which may be gone by the time of the poll
    int sends = 0;
    int receives = 0;
  };

  // Returns false if the queue is full. In this case the completion is lost.
  bool add(const ibv_wc& completion, const Freed& freed, bool solicited);
  // Takes the oldest completion. Returns false if there is none.
  bool take(ibv_wc& completion, Freed& freed);
  // Makes the next completion put an event into the channel. If `only_solicited` is true, only the completion
  // of a solicited message or of a failed request does so.
  void request_event(bool only_solicited);
  // Returns how many events of this queue the program has taken and not yet acknowledged.
  int unacknowledged() const { return unacknowledged_; }
  void event_taken() { ++unacknowledged_; }
  void acknowledge(int events) { unacknowledged_ -= events; }

 private:
  enum class Wanted { nothing, solicited, any };
  struct Entry {
    ibv_wc completion;
    Freed freed;
  };

  std::deque<Entry> entries_;
  Wanted wanted_ = Wanted::nothing;
  int unacknowledged_ = 0;
};

}  // namespace tutti::provider
