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

// `Driver::State` is what the driver's threads share. No wake-up gets lost, because all threads keep to a
// fixed order. A thread that is about to sleep first announces this (`sleepers`, `dozing`, `background`), and
// then checks again for work and for the baton. A thread that makes work or drops the baton does so first,
// and then checks for sleepers. All of these accesses are sequentially consistent operations, without fences.
// So at least one of the two threads always sees what the other thread has done.
namespace tutti {

// A `BackgroundState` says what the background thread does.
enum BackgroundState : std::uint32_t {
  background_busy,      // awake; checks for work before it sleeps
  background_sleeping,  // asleep on the driver's descriptor; pollables have prepared for it
  background_watching,  // callers drive; this thread checks again after 1 to 16 grace periods
  background_parked,    // a caller holds the baton for a long time, and must wake this thread when it leaves
};

struct Driver::State {
  explicit State(DriverOptions from)
      : options(from), spin(from.spin), yield(from.yield, SpinPolicy::InVain::is_fine) {}

  const DriverOptions options;
  Poller poller;
  const std::uint32_t born = fork_generation();

  // This is the address of a thread-local variable of the thread that holds the baton, or null if the baton
  // is free.
  alignas(64) std::atomic<const void*> holder{nullptr};
  std::atomic<std::uint64_t> drives{0};     // how often the baton was dropped; only the holder writes it
  std::atomic<std::uint32_t> sleepers{0};   // callers that sleep, or are about to, in `queue` or epoll
  std::atomic<std::uint32_t> claimants{0};  // threads in `enter`; waiters give them priority
  // This is true if a wake-up must ring the poller's bell. There are two reasons for that. A caller
  // sleeps in epoll, or the program's own event loop may sleep on the driver's descriptor because
  // there is no background thread.
  std::atomic<bool> dozing{false};
  std::atomic<std::uint32_t> background{background_busy};
  std::atomic<bool> has_background{false};
  std::atomic<bool> stopping{false};

  alignas(64) std::atomic<DriverTask*> tasks{nullptr};  // a stack, newest first
  std::atomic<bool> attention{false};                   // wake() was called

  WaitQueue queue;
  Descriptor kick;  // eventfd that ends the background thread's sleep
  std::thread thread;

  // Only the holder of the baton touches the members below.
  alignas(64) std::vector<Pollable*> pollables;  // removed pollables are null until the end of the pass
  bool pollables_removed = false;
  SpinPolicy spin;
  SpinPolicy yield;
  bool crowded = false;  // whether, while the driving thread waited, other threads wanted its processor
  bool armed = false;
  // This is true if a pollable waited for a change in shared memory (`Driver::expects_memory`) when
  // the driver last had nothing to do.
  bool expects_memory = false;
  unsigned unasked = 0;  // counts passes with work; after every few of them, the kernel is asked, too

  bool free() const { return holder.load() == nullptr; }
  bool pending() const { return tasks.load() != nullptr || attention.load(); }
  // Rings the poller's bell if `dozing` was set, and returns whether it was.
  bool ring_if_dozing() {
    if (!dozing.load() || !dozing.exchange(false)) return false;
    poller.ring();
    return true;
  }
  void rouse_background();
};

}  // namespace tutti
