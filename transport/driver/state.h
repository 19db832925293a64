#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/descriptor.h"
#include "core/fork_guard.h"
#include "transport/driver/driver.h"
#include "transport/driver/poller.h"
#include "transport/driver/spin_policy.h"
#include "transport/driver/wait_queue.h"

// `Driver::State` is what the driver's threads share, and how they find each other without losing a wake-up:
// a thread that is about to sleep first says so (`sleepers`, `dozing`, `background`), then looks again for
// work and for the baton; a thread that makes work or drops the baton first does that, then looks for
// sleepers. All of these accesses are sequentially consistent *operations*, so one of the two always sees the
// other.
namespace tutti {

// The state of the background thread.
enum BackgroundState : std::uint32_t {
  background_busy,      // awake; will look for work before it sleeps
  background_sleeping,  // in the kernel, on the driver's descriptor; pollables are armed
  background_watching,  // callers drive; it looks again after a grace period
  background_parked,    // a caller holds the baton for long; when it leaves it must wake this thread
};

struct Driver::State {
  explicit State(DriverOptions from)
      : options(from), spin(from.spin), yield(from.yield, SpinPolicy::InVain::is_fine) {}

  const DriverOptions options;
  Poller poller;
  const std::uint32_t born = fork_generation();

  // The thread that holds the baton, as the address of a thread-local; null if it is free.
  alignas(64) std::atomic<const void*> holder{nullptr};
  std::atomic<std::uint64_t> drives{0};     // the number of drives so far; only the holder writes it
  std::atomic<std::uint32_t> sleepers{0};   // callers in the kernel or about to be: in `queue` or in epoll
  std::atomic<std::uint32_t> claimants{0};  // those in `enter`: waiters let them go first
  // Set if the eventfd must be rung: a caller sleeps in epoll, or, without a background thread, the host
  // program may.
  std::atomic<bool> dozing{false};
  std::atomic<std::uint32_t> background{background_busy};
  std::atomic<bool> has_background{false};
  std::atomic<bool> stopping{false};

  alignas(64) std::atomic<DriverTask*> tasks{nullptr};  // a stack, newest first
  std::atomic<bool> attention{false};                   // wake() was called

  WaitQueue queue;
  Descriptor kick;  // eventfd that ends the background thread's sleep
  std::thread thread;

  // Touched by the holder only.
  alignas(64) std::vector<Pollable*> pollables;  // null: removed, until the end of the pass
  bool pollables_removed = false;
  SpinPolicy spin;
  SpinPolicy yield;
  bool crowded = false;  // others wanted this processor while we waited
  bool armed = false;
  bool expects_memory = false;  // a pollable did when the driver last ran out of work
  unsigned unasked = 0;         // passes in a row that did not ask the kernel

  bool free() const { return holder.load() == nullptr; }
  bool pending() const { return tasks.load() != nullptr || attention.load(); }
  // Returns whether a thread was there to hear it.
  bool ring_if_dozing() {
    if (!dozing.load() || !dozing.exchange(false)) return false;
    poller.ring();
    return true;
  }
  void rouse_background();
};

}  // namespace tutti
