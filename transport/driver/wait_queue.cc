#include "transport/driver/wait_queue.h"

#include "transport/driver/futex.h"

namespace tutti {

void WaitQueue::enter(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  waiter.previous = last_;
  (last_ != nullptr ? last_->next : first_) = &waiter;
  last_ = &waiter;
}

void WaitQueue::leave(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  (waiter.previous != nullptr ? waiter.previous->next : first_) = waiter.next;
  (waiter.next != nullptr ? waiter.next->previous : last_) = waiter.previous;
}

void WaitQueue::wake_owners(const std::atomic<std::uint32_t>& done) {
  const std::lock_guard lock(mutex_);
  for (Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next) {
    if (waiter->done == &done) wake(*waiter);
  }
}

void WaitQueue::wake_next() {
  const std::lock_guard lock(mutex_);
  Waiter* chosen = first_;
  for (Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next) {
    if (waiter->done != nullptr) continue;
    chosen = waiter;
    break;
  }
  if (chosen != nullptr) wake(*chosen);
}

void WaitQueue::wake(Waiter& waiter) {
  if (waiter.signal.exchange(1, std::memory_order_acq_rel) == 0) futex_wake(waiter.signal);
}

}  // namespace tutti
