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

// The `Driver` makes all progress. It has a baton, a lock that one thread at a time holds. That thread
// drives: it polls and calls handlers. All other threads hand work over to the driving thread, or wait. There
// is one driver for each `init`.
//
// A waiting caller takes the baton and drives on its own thread, so that no other thread is involved on the
// latency path. A background thread drives when no caller has driven for a while (`DriverOptions::grace`).
// The background thread does not hold the baton while it sleeps in the kernel, so a caller never has to wait
// until that thread wakes up. A thread that drops the baton wakes another waiter.
//
// The driver has its own epoll instance rather than an asio::io_context, for three reasons. A program with
// its own event loop needs a descriptor to sleep on. One sleep must cover sockets, shared-memory doorbells
// and completion queues. A spinning waiter must be able to poll without a system call.
//
// In a child of fork() the driver no longer works: `forked` returns true, `try_enter` and `wait` return
// false, and all watched descriptors have been replaced by /dev/null (fork_guard.h).
class TUTTI_CAPABILITY("baton") Driver {
 public:
  explicit Driver(DriverOptions options);
  ~Driver();  // ends the background thread; no pollable or descriptor may still be registered
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Returns ok, or why this driver cannot work (no descriptors are left, say). If it cannot work, `watch`
  // fails with this status, and `wait` returns false.
  const Status& status() const;

  // --- any thread ---

  // Takes the baton if it is free, and never blocks. The holder must call `leave`.
  bool try_enter() TUTTI_TRY_ACQUIRE(true);
  void leave() TUTTI_RELEASE();
  // Takes the baton: asks its holder to leave, and sleeps until the baton is free. This is meant for set-up
  // and tear-down. A thread that already drives must not call it. In a forked child `enter` succeeds at once,
  // so that destructors can run there.
  void enter() TUTTI_ACQUIRE();
  // Returns whether the calling thread holds the baton. For example, callers use this to reject a `wait`
  // inside a `then` callback.
  bool driven_by_this_thread() const;
  // Tells the thread-safety analysis that the caller drives, where the analysis cannot see it (behind an
  // interface). An assertion checks this at run time.
  void assert_driven() const TUTTI_ASSERT_CAPABILITY(this);
  // Lets the driving thread run the task as soon as possible, and wakes a sleeping driver.
  void post(DriverTask& task);
  // Makes a sleeping driver check for work again. The call is cheap when no thread sleeps.
  void wake();
  // Drives, or waits while another thread drives, until `done` is not zero or the deadline has passed.
  // Returns false if the deadline has passed. Also returns false, at once, if the status is not ok or the
  // process is a forked child. The thread that sets `done` must call `notify(done)` afterwards, even if
  // `done` has been destroyed by then. A thread that already drives must not call `wait`.
  bool wait(const std::atomic<std::uint32_t>& done, Deadline deadline);
  void notify(const std::atomic<std::uint32_t>& done);
  // Makes one pass over all tasks, pollables and descriptors, unless another thread drives. A program's own
  // event loop calls it. Returns whether anything was done.
  bool progress();
  // Returns a descriptor that becomes readable when `progress` has something to do. The program must not read
  // from it.
  int descriptor() const;
  // Ends the background thread for good. From then on only callers drive.
  void stop();
  // Returns true in a child of the process that made this driver.
  bool forked() const;

  // --- the driving thread only ---

  void add(Pollable& pollable) TUTTI_REQUIRES(this);
  void remove(Pollable& pollable) TUTTI_REQUIRES(this);
  // Watches a descriptor as epoll does, level triggered. A handler may remove itself or other handlers while
  // it is called.
  Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) TUTTI_REQUIRES(this);
  void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) TUTTI_REQUIRES(this);
  void unwatch(int descriptor) TUTTI_REQUIRES(this);

 private:
  struct State;

  // Runs tasks and polls all pollables once. If `ask_kernel` is set, also checks epoll, though not each time
  // while pollables have work. Returns whether anything was done.
  bool pass(bool ask_kernel) TUTTI_REQUIRES(this);
  bool run_tasks() TUTTI_REQUIRES(this);
  bool expects_memory() const TUTTI_REQUIRES(this);
  // `arm` tells the pollables that the driver is about to sleep. `disarm` tells them that it is awake again.
  // `arm` returns whether a pollable has work after all.
  bool arm() TUTTI_REQUIRES(this);
  void disarm() TUTTI_REQUIRES(this);
  Deadline next_deadline() const TUTTI_REQUIRES(this);
  // Drives until `done` is set, the deadline has passed or another thread needs the baton.
  void drive(const std::atomic<std::uint32_t>& done, Deadline deadline) TUTTI_REQUIRES(this);
  void sleep(const std::atomic<std::uint32_t>& done, Deadline deadline) TUTTI_REQUIRES(this);
  // Sleeps until `done` is set, the deadline has passed or this thread has the baton. Returns true if it has
  // the baton. If `done` is null, the thread waits only for the baton.
  bool await_turn(const std::atomic<std::uint32_t>* done, Deadline deadline);
  // Makes some thread check for work.
  void alert();

  void run_background();
  // Makes one pass on the background thread, and drops the baton. Returns the time until which that thread
  // may sleep.
  Deadline drive_background() TUTTI_RELEASE();
  // Waits until no caller has driven for a grace period. Returns earlier if there is work and no thread
  // drives.
  void watch_callers();

  std::unique_ptr<State> state_;
};

// A `Pollable` makes progress when it is polled. Only the driving thread calls it.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // Does what can be done without blocking. Returns whether anything was done.
  virtual bool poll() = 0;
  // Prepares for the driver's sleep: asks peers to wake the driver (by a shared-memory doorbell, say).
  // Returns true if there is work after all. In that case the driver must not sleep. `cancel_sleep` follows
  // in either case.
  virtual bool prepare_sleep() { return false; }
  virtual void cancel_sleep() {}
  // Returns whether this object waits for a change in memory rather than for a descriptor. If so, a waiter
  // polls pollables more often than it asks the kernel. The driver calls this when there is nothing left to
  // do.
  virtual bool expects_memory() const { return false; }
  // Returns whether data may arrive at descriptors that `poll` does not read. If so, a waiter asks the kernel
  // as often as usual, even if other pollables wait for changes in memory.
  virtual bool expects_descriptors() const { return false; }
  // Returns the time at which this object must be polled even if nothing happens.
  virtual Deadline next_deadline() const { return Deadline::never(); }
};

// A `DriverTask` is a piece of work for the driving thread. It runs exactly once, and the caller keeps it
// alive until then.
struct DriverTask {
  void (*run)(DriverTask& task) = nullptr;
  DriverTask* next = nullptr;
};

// `DriverOptions` say how long threads wait before they sleep.
struct DriverOptions {
  // A waiter first spins for this long. After some microseconds it yields the processor at each
  // poll. It stops spinning if another thread has run. `init` sets this time to 0 when cores are
  // scarce.
  std::chrono::nanoseconds spin = std::chrono::microseconds(50);
  // After spinning, the waiter polls and yields the processor in turn for this long. Only then does it sleep,
  // since a wake-up is expensive for both threads.
  std::chrono::nanoseconds yield = std::chrono::microseconds(200);
  // If this is true, threads that wait get short time slices (transport/driver/time_slice.h). That helps if
  // ranks take turns on the processors, and reach each other through the kernel.
  bool short_slices = false;
  // After a caller has driven, the background thread does not drive for this long.
  std::chrono::nanoseconds grace = std::chrono::milliseconds(1);
  // If this is false, there is no background thread, and only callers drive. This is for programs
  // with their own event loop.
  bool background = true;
};

// A `DriverGuard` waits for the baton and holds it for a scope. It is for set-up and tear-down, not for the
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
