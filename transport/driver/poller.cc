#include "transport/driver/poller.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/error_text.h"
#include "core/fork_guard.h"
#include "transport/driver/timespec.h"

namespace tutti {
namespace {

std::uint64_t name_of(int descriptor, std::uint32_t serial) {
  return static_cast<std::uint64_t>(serial) << 32 | static_cast<std::uint32_t>(descriptor);
}

Status system_failure(const char* call) {
  const int error = errno;
  const bool scarce = error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOSPC;
  return {scarce ? Code::resource_exhausted : Code::internal, std::string(call) + ": " + error_text(error)};
}

void swallow(int descriptor) {
  std::uint64_t count = 0;
  while (read(descriptor, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

// Returns the whole milliseconds that are left, rounded down, or -1 if the deadline is `never`.
int whole_milliseconds(Deadline deadline) {
  if (deadline.is_never()) return -1;
  const auto left = std::chrono::floor<std::chrono::milliseconds>(deadline.remaining()).count();
  return static_cast<int>(std::min<decltype(left)>(left, INT_MAX));
}

}  // namespace

Poller::Poller() : epoll_(Descriptor::guarded(epoll_create1(EPOLL_CLOEXEC))) {
  if (!epoll_) {
    status_ = system_failure("epoll_create1");
    return;
  }
  bell_ = Descriptor::guarded(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell_) {
    status_ = system_failure("eventfd");
    return;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = name_of(bell_.get(), 0);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.get(), &event) != 0) status_ = system_failure("epoll_ctl");
}

Status Poller::watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
  const std::uint32_t serial = next_serial_++;
  if (next_serial_ == 0) next_serial_ = 1;
  epoll_event event{};
  event.events = events;
  event.data.u64 = name_of(descriptor, serial);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) return system_failure("epoll_ctl");
  slots_[descriptor] = Slot{&handler, serial};
  guard_descriptor(descriptor);
  return {};
}

void Poller::rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
  const auto slot = slots_.find(descriptor);
  if (slot == slots_.end()) return;
  slot->second.handler = &handler;
  epoll_event event{};
  event.events = events;
  event.data.u64 = name_of(descriptor, slot->second.serial);
  // This call cannot fail for a descriptor that is being watched.
  static_cast<void>(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event));
}

void Poller::unwatch(int descriptor) {
  if (slots_.erase(descriptor) == 0) return;
  release_descriptor(descriptor);
  static_cast<void>(epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr));
}

void Poller::look() { fetch(0); }

void Poller::sleep(Deadline deadline) {
  const int milliseconds = whole_milliseconds(deadline);
  if (milliseconds != 0) {
    fetch(milliseconds);
    if (found_count_ != 0) return;
  }
  // epoll_wait() counts whole milliseconds, so ppoll() waits for the rest of the time. Without ppoll() the
  // thread would spin for the rest, or sleep too long. (epoll_pwait2() counts nanoseconds, but older kernels
  // and containers do not have it.)
  pollfd epoll{epoll_.get(), POLLIN, 0};
  const timespec rest = timespec_of(deadline.remaining());
  if (ppoll(&epoll, 1, &rest, nullptr) > 0) look();
}

void Poller::fetch(int timeout_ms) {
  found_count_ = epoll_wait(epoll_.get(), found_.data(), static_cast<int>(found_.size()), timeout_ms);
}

bool Poller::deliver() {
  bool any = false;
  for (int i = 0; i < found_count_; ++i) any |= call_handler(found_[static_cast<std::size_t>(i)]);
  found_count_ = 0;
  return any;
}

bool Poller::call_handler(const epoll_event& event) {
  const auto descriptor = static_cast<int>(static_cast<std::uint32_t>(event.data.u64));
  const auto serial = static_cast<std::uint32_t>(event.data.u64 >> 32);
  if (serial == 0) {
    if (descriptor == alarm_.get()) alarm_at_ = Deadline::never();
    swallow(descriptor);
    return false;
  }
  const auto slot = slots_.find(descriptor);
  if (slot == slots_.end() || slot->second.serial != serial) return false;
  slot->second.handler->on_ready(event.events);
  return true;
}

void Poller::ring() {
  const std::uint64_t one = 1;
  // EAGAIN means that the bell is ringing already.
  while (write(bell_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

Status Poller::prepare_alarm() {
  if (alarm_) return {};
  alarm_ = Descriptor::guarded(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!alarm_) return system_failure("timerfd_create");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = name_of(alarm_.get(), 0);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, alarm_.get(), &event) == 0) return {};
  alarm_.reset();
  return system_failure("epoll_ctl");
}

void Poller::set_alarm(Deadline deadline) {
  if (deadline.when() == alarm_at_.when()) return;
  if (!prepare_alarm().ok()) return;  // without an alarm, only the next event wakes the program's event loop
  alarm_at_ = deadline;
  itimerspec when{};  // all zeros disarm the timer
  if (!deadline.is_never()) {
    when.it_value = timespec_of(std::max(std::chrono::nanoseconds(1), deadline.remaining()));
  }
  static_cast<void>(timerfd_settime(alarm_.get(), 0, &when, nullptr));
}

}  // namespace tutti
