#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include <tutti/deadline.h>

namespace tutti {

// A `WaitQueue` holds the threads that sleep until their `done` is set or they can take the baton. It is a
// part of the Driver. The `Waiter` objects live on the stacks of the sleepers. The mutex is held only to walk
// along the list and to make one futex call per thread that is woken.
class WaitQueue {
 public:
  struct Waiter {
    const std::atomic<std::uint32_t>* done = nullptr;  // null if the thread waits only for the baton
    std::atomic<std::uint32_t> signal{0};
    Waiter* next = nullptr;
    Waiter* previous = nullptr;

    bool is_done() const { return done != nullptr && done->load(std::memory_order_acquire) != 0; }
  };

  void enter(Waiter& waiter);
  void leave(Waiter& waiter);
  // Wakes the threads that wait for `done`.
  void wake_owners(const std::atomic<std::uint32_t>& done);
  // Wakes one thread to take the baton. It prefers a thread that waits only for the baton, and otherwise
  // chooses the thread that has waited longest. If that thread has been woken already, this function wakes no
  // other thread.
  void wake_next();

 private:
  static void wake(Waiter& waiter);

  std::mutex mutex_;
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

}  // namespace tutti
