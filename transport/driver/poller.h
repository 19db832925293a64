#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include <sys/epoll.h>

#include <tutti/deadline.h>
#include <tutti/status.h>

#include "core/descriptor.h"
#include "transport/driver/descriptor_handler.h"

namespace tutti {

// A `Poller` is an epoll instance with a bell (an eventfd) that ends its sleep. It is a part of the Driver.
// Only the driving thread may call it, except for `ring` and `descriptor`.
class Poller {
 public:
  Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Returns ok, or why the poller cannot work (usually because no descriptors are left).
  const Status& status() const { return status_; }

  Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler);
  void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler);
  void unwatch(int descriptor);

  // Asks the kernel what is ready, without sleeping.
  void look();
  // Sleeps until something is ready, the bell rings, a signal arrives or the deadline has passed. It
  // oversleeps by no more than the kernel's timer slack (docs/seams/sleep.md).
  void sleep(Deadline deadline);
  // Calls the handlers for the events that the last `look` or `sleep` found. Returns whether there were any.
  bool deliver();

  // Ends the current sleep or, if there is none, the next one. Any thread may call it.
  void ring();
  // Returns the epoll descriptor, which is readable when `look` would find something.
  int descriptor() const { return epoll_.get(); }
  // Also makes the epoll descriptor readable when the deadline has passed. A program whose event loop sleeps
  // on the descriptor needs this, since the loop does not know the driver's deadlines.
  void set_alarm(Deadline deadline);
  // Makes the alarm's descriptor, unless there is one. Without this call the first `set_alarm` makes the
  // descriptor, and has no effect if the process has no descriptor left by then.
  Status prepare_alarm();

 private:
  // A descriptor may be unwatched, and its number reused, after an event for it was fetched. That event must
  // not reach the handler of the new descriptor. So every watch has a serial number, which the kernel hands
  // back with each event.
  struct Slot {
    DescriptorHandler* handler;
    std::uint32_t serial;
  };

  void fetch(int timeout_ms);
  bool call_handler(const epoll_event& event);

  Descriptor epoll_;
  Descriptor bell_;
  Descriptor alarm_;  // made by `prepare_alarm`
  Deadline alarm_at_ = Deadline::never();
  Status status_;
  std::uint32_t next_serial_ = 1;  // 0 is for the poller's own descriptors
  std::array<epoll_event, 64> found_;
  int found_count_ = 0;
  std::unordered_map<int, Slot> slots_;
};

}  // namespace tutti
