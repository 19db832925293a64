#include "transport/driver/driver.h"

#include <algorithm>
#include <cassert>

#include "core/relax.h"
#include "transport/driver/futex.h"
#include "transport/driver/idle_spell.h"
#include "transport/driver/state.h"
#include "transport/driver/time_slice.h"

namespace tutti {
namespace {

// These are the numbers of passes between two checks of epoll. The first applies while a waiter spins, the
// second while a pollable expects a change in memory. Both are powers of two.
constexpr unsigned spinning_passes_per_look = 4;
constexpr unsigned memory_passes_per_look = 16;
// A waiter that has the processor to itself reads the clock once in this many passes.
constexpr unsigned idle_passes_per_clock = 8;
// A driver that is always busy reads the clock once in this many passes.
constexpr unsigned passes_per_clock = 64;
// While another thread drives, a waiter spins at most this long before it sleeps.
constexpr std::chrono::nanoseconds longest_spin_beside = std::chrono::microseconds(10);

thread_local char this_thread_mark;

// Returns the number of passes from one check of epoll to the next. The passes in between only run tasks and
// poll the pollables.
unsigned passes_per_look(bool expects_memory, bool spinning) {
  if (expects_memory) return memory_passes_per_look;
  return spinning ? spinning_passes_per_look : 1;
}

bool is_set(const std::atomic<std::uint32_t>& done) { return done.load(std::memory_order_acquire) != 0; }

}  // namespace

// --- the baton ---

bool Driver::try_enter() TUTTI_NO_THREAD_SAFETY_ANALYSIS {  // it implements the acquisition
  if (forked()) return false;
  const void* expected = nullptr;
  return state_->holder.compare_exchange_strong(expected, &this_thread_mark);
}

void Driver::enter() TUTTI_NO_THREAD_SAFETY_ANALYSIS {
  if (forked()) {  // the thread that held the baton does not exist here
    state_->holder.store(&this_thread_mark);
    return;
  }
  if (try_enter()) return;
  assert(!driven_by_this_thread());
  state_->claimants.fetch_add(1);
  state_->ring_if_dozing();
  while (!await_turn(nullptr, Deadline::never())) {
  }
  state_->claimants.fetch_sub(1);
}

void Driver::leave() TUTTI_NO_THREAD_SAFETY_ANALYSIS {
  State& state = *state_;
  if (forked()) {
    state.holder.store(nullptr);
    return;
  }
  if (state.tasks.load(std::memory_order_relaxed) != nullptr && run_tasks() && state.armed) {
    // `arm` has asked all pollables whether they have work. A task may have made work for them
    // since, so no thread may rely on these answers and sleep.
    state.attention.store(true);
  }
  if (!state.has_background.load(std::memory_order_relaxed)) {
    // The program's event loop may now sleep on the driver's descriptor.
    state.dozing.store(true);
    if (arm()) state.ring_if_dozing();
    state.poller.set_alarm(next_deadline());
  }
  state.drives.store(state.drives.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  state.holder.store(nullptr);

  if (state.sleepers.load() != 0) state.queue.wake_next();
  const bool pending = state.pending();
  if (!state.has_background.load(std::memory_order_relaxed)) {
    if (pending) state.ring_if_dozing();
    return;
  }
  const std::uint32_t background = state.background.load();
  // The pollables prepared for the background thread's sleep, but this caller has touched them since. So the
  // background thread must wake up, watch the callers, and prepare for its next sleep.
  if (background == background_sleeping || background == background_parked ||
      (pending && background == background_watching)) {
    state.rouse_background();
  }
}

bool Driver::driven_by_this_thread() const {
  return state_->holder.load(std::memory_order_relaxed) == &this_thread_mark;
}

void Driver::assert_driven() const { assert(driven_by_this_thread()); }

bool Driver::forked() const { return state_->born != fork_generation(); }

const Status& Driver::status() const { return state_->poller.status(); }

int Driver::descriptor() const { return state_->poller.descriptor(); }

// --- handing work over ---

void Driver::post(DriverTask& task) {
  DriverTask* top = state_->tasks.load(std::memory_order_relaxed);
  do {
    task.next = top;
  } while (!state_->tasks.compare_exchange_weak(top, &task));
  alert();
}

void Driver::wake() {
  state_->attention.store(true);
  alert();
}

void Driver::alert() {
  State& state = *state_;
  if (state.ring_if_dozing()) return;
  // If a thread holds the baton, it checks for work when it drops the baton. The background thread checks
  // before it sleeps.
  if (state.free() && state.has_background.load(std::memory_order_relaxed)) state.rouse_background();
}

void Driver::notify(const std::atomic<std::uint32_t>& done) {
  State& state = *state_;
  // This access must be a read-modify-write. It ensures at least one of two things: this thread
  // sees that a waiter has incremented `sleepers`, or that waiter sees afterwards that `done` is
  // set.
  if (state.sleepers.fetch_add(0) == 0) return;
  // A forked child has no sleepers, and the queue's lock may be held by a thread that does not exist there.
  if (forked()) return;
  state.queue.wake_owners(done);
  if (!driven_by_this_thread()) state.ring_if_dozing();
}

// --- waiting ---

bool Driver::wait(const std::atomic<std::uint32_t>& done,
                  Deadline deadline)
    TUTTI_NO_THREAD_SAFETY_ANALYSIS {  // it holds the baton for part of the time
  if (is_set(done)) return true;
  if (forked() || !status().ok()) return false;
  assert(!driven_by_this_thread());
  bool mine = state_->claimants.load() == 0 && try_enter();
  for (;;) {
    if (mine) {
      drive(done, deadline);
      leave();
    }
    if (is_set(done)) return true;
    if (deadline.expired()) return false;
    mine = await_turn(&done, deadline);
  }
}

bool Driver::await_turn(const std::atomic<std::uint32_t>* done,
                        Deadline deadline)
    TUTTI_NO_THREAD_SAFETY_ANALYSIS {  // it acquires the baton conditionally
  State& state = *state_;
  const bool polite = done != nullptr;  // let threads in `enter` go first
  WaitQueue::Waiter waiter;
  waiter.done = done;
  const auto spin = std::min(state.options.spin, longest_spin_beside);
  for (const Deadline end = Deadline::after(spin); spin.count() > 0 && !end.expired(); relax()) {
    if (waiter.is_done()) return false;
    if (state.free() && (!polite || state.claimants.load() == 0) && try_enter()) return true;
  }

  state.queue.enter(waiter);
  state.sleepers.fetch_add(1);
  bool mine = false;
  for (;;) {
    waiter.signal.exchange(0);
    if (waiter.is_done()) break;
    if ((!polite || state.claimants.load() == 0) && try_enter()) {
      mine = true;
      break;
    }
    if (deadline.expired()) break;
    futex_wait(waiter.signal, 0, deadline);
  }
  state.queue.leave(waiter);
  state.sleepers.fetch_sub(1);
  // This thread may have been woken to take the baton. It does not need the baton, so it wakes the next
  // waiter.
  if (!mine && state.free() && state.sleepers.load() != 0) state.queue.wake_next();
  return mine;
}

// --- driving ---

void Driver::drive(const std::atomic<std::uint32_t>& done, Deadline deadline) {
  State& state = *state_;
  const auto over = [&] { return is_set(done) || state.claimants.load(std::memory_order_relaxed) != 0; };
  IdleSpell idle(state.spin, state.yield, state.crowded);
  for (unsigned passes = 1;; ++passes) {
    const unsigned per_look = passes_per_look(state.expects_memory, idle.is_spinning());
    const bool did = pass((passes & (per_look - 1)) == 0);
    if (did) idle.end();
    if (over()) return;
    if (did) {
      if (passes % passes_per_clock == 0 && deadline.expired()) return;
      continue;
    }
    if (idle.is_alone() && passes % idle_passes_per_clock != 0) {
      relax();
      continue;
    }
    const auto now = Deadline::Clock::now();
    if (now >= deadline.when()) return;
    if (!idle.has_begun()) {
      if (state.options.short_slices) shorten_time_slice();
      state.expects_memory = expects_memory();
      idle.begin(now);
    }
    if (idle.pass_time(now)) continue;
    sleep(done, deadline);
    if (over()) return;
  }
}

void Driver::sleep(const std::atomic<std::uint32_t>& done, Deadline deadline) {
  State& state = *state_;
  state.sleepers.fetch_add(1);
  state.dozing.store(true);
  const bool work = arm() || is_set(done) || state.pending() || state.claimants.load() != 0;
  if (!work) state.poller.sleep(earlier(deadline, next_deadline()));
  state.dozing.store(false);
  state.sleepers.fetch_sub(1);
  disarm();
  state.poller.deliver();
}

bool Driver::pass(bool ask_kernel) {
  State& state = *state_;
  if (state.armed) disarm();
  if (state.attention.load(std::memory_order_relaxed)) state.attention.exchange(false);
  bool did = run_tasks();
  // The loop uses an index, since a pollable that is polled may add other pollables.
  for (std::size_t i = 0; i < state.pollables.size(); ++i) {
    if (state.pollables[i] != nullptr) did |= state.pollables[i]->poll();
  }
  // While pollables have work, only some passes ask the kernel.
  if (ask_kernel && (!did || ++state.unasked % spinning_passes_per_look == 0)) {
    state.poller.look();
    did |= state.poller.deliver();
  }
  if (state.pollables_removed) {
    std::erase(state.pollables, nullptr);
    state.pollables_removed = false;
  }
  return did;
}

bool Driver::expects_memory() const {
  const auto any = [this](bool (Pollable::*expects)() const) {
    return std::ranges::any_of(state_->pollables, [expects](const Pollable* pollable) {
      return pollable != nullptr && (pollable->*expects)();
    });
  };
  return any(&Pollable::expects_memory) && !any(&Pollable::expects_descriptors);
}

bool Driver::run_tasks() {
  if (state_->tasks.load(std::memory_order_relaxed) == nullptr) return false;
  DriverTask* task = state_->tasks.exchange(nullptr);
  DriverTask* in_order = nullptr;
  while (task != nullptr) {
    DriverTask* const following = task->next;
    task->next = in_order;
    in_order = task;
    task = following;
  }
  while (in_order != nullptr) {
    DriverTask* const following = in_order->next;  // read first, since the task may be destroyed when it runs
    in_order->run(*in_order);
    in_order = following;
  }
  return true;
}

bool Driver::arm() {
  if (state_->armed) disarm();
  state_->armed = true;
  bool work = false;
  for (Pollable* pollable : state_->pollables) {
    if (pollable != nullptr) work |= pollable->prepare_sleep();
  }
  return work;
}

void Driver::disarm() {
  state_->armed = false;
  for (Pollable* pollable : state_->pollables) {
    if (pollable != nullptr) pollable->cancel_sleep();
  }
}

Deadline Driver::next_deadline() const {
  Deadline next = Deadline::never();
  for (const Pollable* pollable : state_->pollables) {
    if (pollable != nullptr) next = earlier(next, pollable->next_deadline());
  }
  return next;
}

bool Driver::progress() {
  if (!status().ok() || !try_enter()) return false;
  const bool did = pass(true);
  leave();
  return did;
}

// --- what is driven ---

void Driver::add(Pollable& pollable) {
  if (state_->armed) disarm();  // the new pollable has not prepared for the sleep
  state_->pollables.push_back(&pollable);
}

void Driver::remove(Pollable& pollable) {
  const auto at = std::find(state_->pollables.begin(), state_->pollables.end(), &pollable);
  if (at == state_->pollables.end()) return;
  *at = nullptr;
  state_->pollables_removed = true;
}

Status Driver::watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
  if (!status().ok()) return status();
  return state_->poller.watch(descriptor, events, handler);
}

void Driver::rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
  state_->poller.rewatch(descriptor, events, handler);
}

void Driver::unwatch(int descriptor) { state_->poller.unwatch(descriptor); }

// The thread-safety analysis does not see that `driver_` is the constructor's argument.
DriverGuard::DriverGuard(Driver& driver) TUTTI_NO_THREAD_SAFETY_ANALYSIS : driver_(driver) {
  driver_.enter();
}

DriverGuard::~DriverGuard() TUTTI_NO_THREAD_SAFETY_ANALYSIS { driver_.leave(); }

}  // namespace tutti
