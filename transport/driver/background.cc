#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <tutti/log.h>

#include "core/signals_blocked.h"
#include "transport/driver/futex.h"
#include "transport/driver/state.h"
#include "transport/driver/timespec.h"

// This file implements the background thread, which drives when no caller does.
//
// It sleeps in ppoll() on the driver's epoll descriptor. If it slept in epoll_wait(), it could take an event
// away from a caller that also sleeps in epoll_wait(). The background thread does not hold the baton (the
// lock of the thread that drives) while it sleeps. As soon as a caller has driven, the background thread ends
// that sleep and watches the callers instead. Every 1 to 16 grace periods (`DriverOptions::grace`) it checks
// whether callers still drive. While a caller keeps the baton for a long time, the background thread sleeps
// ("parks") until that caller drops the baton.
namespace tutti {
namespace {

// If callers have driven at least this many times between two checks, the background thread doubles the pause
// before its next check.
constexpr std::uint64_t busy_callers = 16;
constexpr int longest_pauses = 16;  // the longest pause between two checks, in grace periods
// After this time the background thread wakes by itself, to check whether it must stop. Another thread
// normally wakes it by `kick`, an eventfd, but a program that closes all its descriptors also closes `kick`.
constexpr std::chrono::nanoseconds longest_sleep = std::chrono::seconds(1);

void poll_until(int descriptor, int kick, Deadline deadline) {
  pollfd watched[] = {{descriptor, POLLIN, 0}, {kick, POLLIN, 0}};
  const auto longest = std::min(longest_sleep, deadline.remaining());
  const timespec timeout = timespec_of(longest);
  if (ppoll(watched, 2, &timeout, nullptr) <= 0) return;
  if ((watched[1].revents & POLLNVAL) != 0)
    std::this_thread::sleep_for(longest);  // `kick` is closed, so ppoll() returns at once
  if ((watched[1].revents & POLLIN) == 0) return;
  std::uint64_t kicks = 0;
  while (read(kick, &kicks, sizeof kicks) < 0 && errno == EINTR) {
  }
}

}  // namespace

Driver::Driver(DriverOptions options) : state_(std::make_unique<State>(options)) {
  State& state = *state_;
  // If there is no background thread, `dozing` is set from the start: the program's event loop may sleep on
  // the descriptor before any thread has driven.
  state.dozing.store(true);
  if (!options.background || !status().ok()) return;
  state.kick = Descriptor::guarded(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  state.dozing.store(false);
  state.has_background.store(static_cast<bool>(state.kick));
  try {
    const SignalsBlocked blocked;
    if (state.kick) state.thread = std::thread([this] { run_background(); });
  } catch (const std::system_error& error) {
    log::warn("no background thread (", error.what(), "): operations progress only while a caller waits");
    state.has_background.store(false);
  }
  if (!state.has_background.load()) state.dozing.store(true);
}

Driver::~Driver() {
  if (forked()) {
    // A forked child has only the thread that called fork. It has no background thread to join, and threads
    // that do not exist there may hold the driver's locks. So the child leaks the state.
    static_cast<void>(state_.release());
    return;
  }
  stop();
}

void Driver::stop() {
  State& state = *state_;
  if (forked()) return;
  state.stopping.store(true);
  state.rouse_background();
  if (!state.thread.joinable() || state.thread.get_id() == std::this_thread::get_id()) return;
  state.thread.join();
  state.has_background.store(false);
  // From now on, the program's event loop may sleep on the descriptor. When this guard drops the baton,
  // `leave` prepares for that sleep.
  const DriverGuard guard(*this);
}

void Driver::State::rouse_background() {
  switch (background.exchange(background_busy)) {
    case background_sleeping: {
      const std::uint64_t one = 1;
      while (write(kick.get(), &one, sizeof one) < 0 && errno == EINTR) {
      }
      break;
    }
    case background_watching:
    case background_parked:
      futex_wake(background);
      break;
    default:
      break;
  }
}

void Driver::run_background() TUTTI_NO_THREAD_SAFETY_ANALYSIS {  // a loop around try_enter
  pthread_setname_np(pthread_self(), "tutti");
  State& state = *state_;
  bool callers_came = false;
  while (!state.stopping.load()) {
    if (callers_came) watch_callers();
    callers_came = !try_enter();
    if (callers_came) continue;
    const std::uint64_t mine = state.drives.load(std::memory_order_relaxed) + 1;
    const Deadline until = drive_background();
    state.background.store(background_sleeping);
    callers_came = !state.free() || state.drives.load(std::memory_order_relaxed) != mine;
    if (!callers_came && !state.pending() && !state.stopping.load()) {
      poll_until(state.poller.descriptor(), state.kick.get(), until);
      callers_came = !state.free() || state.drives.load(std::memory_order_relaxed) != mine;
    }
    state.background.store(background_busy);
  }
}

Deadline Driver::drive_background() {
  pass(true);
  // This thread makes only one pass, so that callers can make the next one. If anything is still ready, the
  // sleep ends at once.
  const Deadline until = arm() ? Deadline::after({}) : next_deadline();
  leave();
  return until;
}

void Driver::watch_callers() {
  State& state = *state_;
  const auto wanted = [&state] { return state.stopping.load() || (state.pending() && state.free()); };
  auto pause = state.options.grace;
  for (;;) {
    const std::uint64_t seen = state.drives.load(std::memory_order_relaxed);
    state.background.store(background_watching);
    if (wanted()) break;
    futex_wait(state.background, background_watching, Deadline::after(pause));
    if (wanted()) break;
    const std::uint64_t drives = state.drives.load(std::memory_order_relaxed) - seen;
    // A check takes the processor away from a caller. So this thread waits longer if callers are busier.
    pause = drives < busy_callers ? state.options.grace
                                  : std::min(2 * pause, longest_pauses * state.options.grace);
    if (state.free()) {
      if (drives == 0) break;
      continue;
    }
    state.background.store(background_parked);
    if (!state.free() && !state.stopping.load()) {
      futex_wait(state.background, background_parked, Deadline::never());
    }
  }
  state.background.store(background_busy);
}

}  // namespace tutti
