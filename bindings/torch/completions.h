#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>

#include <c10/util/intrusive_ptr.h>

#include "bindings/torch/pending_work.h"

namespace tutti_torch {

// `Completions` settles operations for which perhaps no thread ever waits (`PendingWork::settle`). These are
// of three kinds: operations with a future, operations on the memory of a CUDA device, and operations whose
// Work object was destroyed before they had ended and their results had been copied.
//
// One thread leads: it makes progress for the outstanding operations, oldest first. The thread that
// settles an operation completes its future, and so runs the future's callbacks. A callback may
// block. For example, it may wait for the interpreter, or for another operation as PowerSGD's
// callback does. So the leader gives up the lead before it settles an operation, and another thread
// takes the lead. The threads start with the first operation. There are at most n + 2 threads while
// n callbacks block. The threads end when `stop` has been called and no operation is outstanding.
class Completions : public std::enable_shared_from_this<Completions> {
 public:
  void add(c10::intrusive_ptr<PendingWork> work);
  // Tells the threads to end, and does not wait for them. Call this only after the communicators
  // have been destroyed, which ends all operations.
  void stop();

  // Waits until the threads of this process have settled all operations, but not longer than `limit`. No
  // callback may run when the interpreter ends: Python would end the callback's thread, and C++ would then
  // end the process. The calling thread must not hold the GIL.
  static void wait_for_all(std::chrono::milliseconds limit);
  // Makes a forked child forget its parent's operations, since no thread of the child settles them.
  static void forget_all();

 private:
  struct Entry {
    std::shared_ptr<Completions> owner;
    c10::intrusive_ptr<PendingWork> work;  // null after a thread has taken it
    std::size_t open = 0;                  // handles of operations that have not ended yet
    bool ready = false;
  };
  using Entries = std::list<std::shared_ptr<Entry>>;

  static void on_over(void* state, int code, const char* message, int peer);
  void handle_over(const std::shared_ptr<Entry>& entry);
  bool has_task() const { return !ready_.empty() || (leader_of_ == nullptr && !outstanding_.empty()); }
  // Wakes an idle thread, or starts one if there is none. The caller must hold the lock.
  void summon();
  void run();
  c10::intrusive_ptr<PendingWork> take_ready();
  c10::intrusive_ptr<PendingWork> lead(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  Entries outstanding_;
  std::deque<std::shared_ptr<Entry>> ready_;
  const Entry* leader_of_ = nullptr;  // entry that the leader waits for; null if no thread leads
  int idle_ = 0;
  bool stopped_ = false;
};

}  // namespace tutti_torch
