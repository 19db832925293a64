#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/driver/driver.h"

namespace tutti {

using namespace std::chrono_literals;
using Flag = std::atomic<std::uint32_t>;

inline Deadline soon() { return Deadline::after(30s); }

inline DriverOptions without_background() {
  DriverOptions options;
  options.background = false;
  return options;
}

inline void set(Driver& driver, Flag& flag) {
  flag.store(1, std::memory_order_release);
  driver.notify(flag);
}

struct Task : DriverTask {
  std::function<void()> action;
  explicit Task(std::function<void()> what) : action(std::move(what)) {
    run = [](DriverTask& task) { static_cast<Task&>(task).action(); };
  }
};

// A `Pipe` has two ends. The driver watches one end, and tests write to the other.
class Pipe final : public DescriptorHandler {
 public:
  explicit Pipe(Driver& driver) : driver_(driver) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends_.data()), 0);
    const DriverGuard guard(driver_);
    EXPECT_TRUE(driver_.watch(ends_[0], EPOLLIN, *this).ok());
  }
  ~Pipe() override {
    {
      const DriverGuard guard(driver_);
      driver_.unwatch(ends_[0]);
    }
    for (const int end : ends_) close(end);
  }
  void on_ready(std::uint32_t) override {
    std::array<char, 64> bytes;
    const ssize_t count = read(ends_[0], bytes.data(), bytes.size());
    if (count <= 0) return;
    received.fetch_add(static_cast<int>(count));
    if (then) then();
  }
  void write_byte() { EXPECT_EQ(write(ends_[1], "x", 1), 1); }
  int watched() const { return ends_[0]; }

  std::atomic<int> received{0};
  std::function<void()> then;

 private:
  Driver& driver_;
  std::array<int, 2> ends_{-1, -1};
};

// A `Polled` is an object that the driver polls. Its members say what it answers to the driver.
class Polled final : public Pollable {
 public:
  explicit Polled(Driver& driver) : driver_(driver) {
    const DriverGuard guard(driver_);
    driver_.add(*this);
  }
  ~Polled() override {
    const DriverGuard guard(driver_);
    driver_.remove(*this);
  }
  bool poll() override {
    passes.fetch_add(1, std::memory_order_relaxed);
    return on_poll && on_poll();
  }
  bool prepare_sleep() override {
    EXPECT_FALSE(asleep);
    asleep = true;
    return work_left && work_left();
  }
  void cancel_sleep() override {
    EXPECT_TRUE(asleep);
    asleep = false;
  }
  bool expects_memory() const override { return memory; }
  bool expects_descriptors() const override { return descriptors; }
  Deadline next_deadline() const override { return deadline; }

  std::atomic<int> passes{0};
  std::function<bool()> on_poll, work_left;
  Deadline deadline = Deadline::never();  // only the driving thread uses this member
  bool asleep = false;
  bool memory = false;  // whether the object waits for a change in memory
  bool descriptors = false;

 private:
  Driver& driver_;
};

}  // namespace tutti
