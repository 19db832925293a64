#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "core/thread_annotations.h"
#include "transport/driver/descriptor_handler.h"

namespace tutti {

struct DriverOptions;
struct DriverTask;
class Pollable;

// The `Driver` is the one place where progress is made: the thread that holds the baton drives, and all
// others hand work over or wait. There is one driver for each `init`.
//
// A waiting caller takes the baton and drives on its own thread: no hand-over on the latency path. A
// background thread drives when no caller has for `grace`. It sleeps in the kernel *without* the baton, so
// that a caller never has to wait for it to wake up. A thread that leaves wakes another waiter.
//
// It has an epoll instance of its own rather than an asio::io_context: hosts need a descriptor to sleep on,
// the one sleep must cover sockets, shared-memory doorbells and completion queues alike, and a spinning
// waiter must be able to poll without a system call.
//
// In a child of fork() nothing works any more: `try_enter` and `wait` return false, all watched descriptors
// have been replaced by /dev/null (fork_guard.h). `forked` says so.
class TUTTI_CAPABILITY("baton") Driver {
 public:
  explicit Driver(DriverOptions options);
  ~Driver();  // stops and joins the background thread; nothing may be registered any more
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Ok, or why this driver cannot work (no descriptors left): `watch` fails with it, `wait` returns false.
  const Status& status() const;

  // --- any thread ---

  // Takes the baton if it is free. Never blocks. The holder must `leave`.
  bool try_enter() TUTTI_TRY_ACQUIRE(true);
  void leave() TUTTI_RELEASE();
  // Takes the baton: asks its holder to leave, and sleeps until then. Meant for set-up and tear-down. A
  // thread that already drives must not call it. In a forked child it succeeds at once, so that destructors
  // can run there.
  void enter() TUTTI_ACQUIRE();
  // Returns true if the calling thread holds the baton (for "wait inside then" errors).
  bool driven_by_this_thread() const;
  // Says that the caller drives where the analysis cannot see it (behind an interface). Checked at run time
  // with assertions.
  void assert_driven() const TUTTI_ASSERT_CAPABILITY(this);
  // The driving thread runs the task as soon as possible; a sleeping driver is woken.
  void post(DriverTask& task);
  // Makes a sleeping driver look again. Cheap when no thread sleeps.
  void wake();
  // Drives, or waits for the thread that does, until `done` is not zero or the deadline has passed; false in
  // the latter case (and at once if not `status().ok()` or `forked()`). The thread that sets `done` then
  // calls `notify(done)`; by then `done` may have been destroyed. Must not be called by a thread that already
  // drives.
  bool wait(const std::atomic<std::uint32_t>& done, Deadline deadline);
  void notify(const std::atomic<std::uint32_t>& done);
  // One pass over everything, for event loops of the host; true if anything was done.
  bool progress();
  // Becomes readable when `progress` has something to do. Not to be read from.
  int descriptor() const;
  // Ends the background thread (it is not restarted). Further driving is by callers only.
  void stop();
  // True in a child of the process that made this driver.
  bool forked() const;

  // --- the driving thread only ---

  void add(Pollable& pollable) TUTTI_REQUIRES(this);
  void remove(Pollable& pollable) TUTTI_REQUIRES(this);
  // epoll semantics, level triggered. A handler may remove itself or others while being called.
  Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) TUTTI_REQUIRES(this);
  void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) TUTTI_REQUIRES(this);
  void unwatch(int descriptor) TUTTI_REQUIRES(this);

 private:
  struct State;

  // Runs tasks and polls all pollables once; asks the kernel too if told so. True if anything was done.
  bool pass(bool ask_kernel) TUTTI_REQUIRES(this);
  bool run_tasks() TUTTI_REQUIRES(this);
  bool expects_memory() const TUTTI_REQUIRES(this);
  // Announce to the pollables that we are going to sleep, or are awake again.
  bool arm() TUTTI_REQUIRES(this);
  void disarm() TUTTI_REQUIRES(this);
  Deadline next_deadline() const TUTTI_REQUIRES(this);
  // Drives until done, expired, or another thread must have the baton.
  void drive(const std::atomic<std::uint32_t>& done, Deadline deadline) TUTTI_REQUIRES(this);
  void sleep(const std::atomic<std::uint32_t>& done, Deadline deadline) TUTTI_REQUIRES(this);
  // Sleeps until done, expired, or the baton is ours: true in the last case. `done` null: only for the baton.
  bool await_turn(const std::atomic<std::uint32_t>* done, Deadline deadline);
  // Makes a thread drive, since there is something to do.
  void alert();

  void run_background();
  // Makes one pass on the background thread, and leaves. Returns until when that thread may sleep.
  Deadline drive_background() TUTTI_RELEASE();
  // Returns once no caller has driven for a grace period, or at once if something is left undone.
  void watch_callers();

  std::unique_ptr<State> state_;
};

// A `Pollable` makes progress when it is polled. The driving thread calls all of it.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // Does what can be done without blocking. True if anything was done.
  virtual bool poll() = 0;
  // The driver is about to sleep: announce it to those that must wake us (a shared-memory doorbell, say).
  // True if there is work after all, and the sleep must not happen. Followed by `cancel_sleep` in either
  // case.
  virtual bool prepare_sleep() { return false; }
  virtual void cancel_sleep() {}
  // Returns whether it waits for something that shows in memory, not on a descriptor: then a waiter polls
  // more often than it asks the kernel. Asked when there is nothing left to do.
  virtual bool expects_memory() const { return false; }
  // The time at which it must be polled even if nothing happens.
  virtual Deadline next_deadline() const { return Deadline::never(); }
};

// A `DriverTask` is a piece of work for the driving thread. Its caller owns it until it runs, exactly once.
struct DriverTask {
  void (*run)(DriverTask& task) = nullptr;
  DriverTask* next = nullptr;
};

// `DriverOptions` say how long threads wait before they sleep.
struct DriverOptions {
  // A waiter polls this long before it sleeps; 0 when cores are scarce.
  std::chrono::nanoseconds spin = std::chrono::microseconds(50);
  // Then it offers the processor to others this long before it sleeps: a wake-up costs both sides dearly.
  std::chrono::nanoseconds yield = std::chrono::microseconds(200);
  // The background thread stays out this long after a caller drove.
  std::chrono::nanoseconds grace = std::chrono::milliseconds(1);
  // False: only callers drive (hosts with an event loop of their own).
  bool background = true;
};

// A `DriverGuard` holds the baton for a scope, and waits for it first: for set-up and tear-down, not for the
// data path.
class TUTTI_SCOPED_CAPABILITY DriverGuard {
 public:
  explicit DriverGuard(Driver& driver) TUTTI_ACQUIRE(driver);
  ~DriverGuard() TUTTI_RELEASE();
  DriverGuard(const DriverGuard&) = delete;
  DriverGuard& operator=(const DriverGuard&) = delete;

 private:
  Driver& driver_;
};

}  // namespace tutti
