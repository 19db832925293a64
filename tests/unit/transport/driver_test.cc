#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tutti/transport/driver.h>

namespace tutti {
namespace {

using namespace std::chrono_literals;
using Flag = std::atomic<std::uint32_t>;

Deadline soon() { return Deadline::after(30s); }

DriverOptions without_background() {
  DriverOptions options;
  options.background = false;
  return options;
}

void set(Driver& driver, Flag& flag) {
  flag.store(1, std::memory_order_release);
  driver.notify(flag);
}

struct Task : DriverTask {
  std::function<void()> action;
  explicit Task(std::function<void()> what) : action(std::move(what)) {
    run = [](DriverTask& task) { static_cast<Task&>(task).action(); };
  }
};

// One end is watched by the driver, the other is written by tests.
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
  Deadline next_deadline() const override { return deadline; }

  std::atomic<int> passes{0};
  std::function<bool()> on_poll, work_left;
  Deadline deadline = Deadline::never();  // the driving thread's
  bool asleep = false;

 private:
  Driver& driver_;
};

TEST(DriverWait, ReturnsAtOnceWhenDone) {
  Driver driver{DriverOptions{}};
  Flag done{1};
  EXPECT_TRUE(driver.wait(done, Deadline::after(0s)));
  Flag undone{0};
  EXPECT_FALSE(driver.wait(undone, Deadline::after(0s)));
}

TEST(DriverWait, NeverGivesUpEarly) {
  for (const auto spin : {0us, 50us}) {
    DriverOptions options;
    options.spin = spin;
    Driver driver{options};
    Flag done{0};
    const auto start = Deadline::Clock::now();
    EXPECT_FALSE(driver.wait(done, Deadline::after(30ms)));
    EXPECT_GE(Deadline::Clock::now() - start, 30ms);
  }
}

TEST(DriverWait, WakesWhenAnotherThreadNotifies) {
  Driver driver{DriverOptions{}};
  for (int round = 0; round < 200; ++round) {
    Flag done{0};
    std::thread other([&] {
      if (round % 2 == 0) std::this_thread::sleep_for(1ms);
      set(driver, done);
    });
    EXPECT_TRUE(driver.wait(done, soon()));
    other.join();
  }
}

TEST(DriverWait, DrivesDescriptors) {
  for (const bool background : {false, true}) {
    DriverOptions options;
    options.background = background;
    Driver driver{options};
    Pipe pipe(driver);
    Flag done{0};
    pipe.then = [&] { set(driver, done); };
    std::thread writer([&] {
      std::this_thread::sleep_for(5ms);
      pipe.write_byte();
    });
    EXPECT_TRUE(driver.wait(done, soon()));
    writer.join();
  }
}

TEST(DriverWait, PollsAtThePollablesDeadline) {
  Driver driver{without_background()};
  Polled polled(driver);
  Flag done{0};
  const Deadline when = Deadline::after(20ms);
  polled.deadline = when;
  polled.on_poll = [&] {
    if (done.load() != 0 || !when.expired()) return false;
    polled.deadline = Deadline::never();
    set(driver, done);
    return true;
  };
  EXPECT_TRUE(driver.wait(done, soon()));
}

TEST(DriverWait, DoesNotSleepOverWorkThatAppearsLate) {
  DriverOptions options = without_background();
  options.spin = 0ns;
  Driver driver{options};
  Polled polled(driver);
  Flag done{0};
  bool work = true;
  polled.work_left = [&] { return work; };
  polled.on_poll = [&] {
    if (polled.passes.load() < 20) return false;
    work = false;
    if (done.load() == 0) set(driver, done);
    return true;
  };
  EXPECT_TRUE(driver.wait(done, soon()));
}

TEST(DriverWait, ManyThreadsEachWithItsOwnFlag) {
  Driver driver{DriverOptions{}};
  constexpr int threads = 12, rounds = 60;
  std::vector<std::unique_ptr<Pipe>> pipes;
  std::vector<Flag> flags(threads);
  for (int i = 0; i < threads; ++i) {
    pipes.push_back(std::make_unique<Pipe>(driver));
    pipes.back()->then = [&driver, &flags, i] { set(driver, flags[static_cast<std::size_t>(i)]); };
  }
  std::atomic<int> completed{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < threads; ++i) {
    waiters.emplace_back([&, i] {
      Flag& flag = flags[static_cast<std::size_t>(i)];
      for (int round = 0; round < rounds; ++round) {
        // The neighbour's pipe is written, so that one's completion is found by whoever drives.
        pipes[static_cast<std::size_t>(i)]->write_byte();
        if (!driver.wait(flag, soon())) break;
        flag.store(0);
        completed.fetch_add(1);
      }
    });
  }
  for (auto& waiter : waiters) waiter.join();
  EXPECT_EQ(completed.load(), threads * rounds);
}

TEST(DriverWait, WhoIsDoneHandsOverToAnotherWaiter) {
  DriverOptions options = without_background();
  Driver driver{options};
  Pipe first(driver), second(driver);
  Flag first_done{0}, second_done{0};
  first.then = [&] { set(driver, first_done); };
  second.then = [&] { set(driver, second_done); };
  for (int round = 0; round < 50; ++round) {
    first_done = second_done = 0;
    std::thread a([&] { EXPECT_TRUE(driver.wait(first_done, soon())); });
    std::thread b([&] { EXPECT_TRUE(driver.wait(second_done, soon())); });
    std::this_thread::sleep_for(1ms);
    first.write_byte();
    a.join();
    second.write_byte();  // seen only if b took the baton that a left
    b.join();
  }
}

TEST(DriverWait, AWaiterThatGivesUpPassesTheBatonOn) {
  Driver driver{without_background()};
  Pipe pipe(driver);
  for (int round = 0; round < 30; ++round) {
    Flag done{0}, never{0};
    pipe.then = [&] { set(driver, done); };
    std::vector<std::thread> quitters;
    for (int i = 0; i < 3; ++i) {
      quitters.emplace_back([&, i] { driver.wait(never, Deadline::after(std::chrono::milliseconds(i))); });
    }
    std::thread waiter([&] { EXPECT_TRUE(driver.wait(done, soon())); });
    for (auto& quitter : quitters) quitter.join();
    pipe.write_byte();
    waiter.join();
  }
}

TEST(DriverBaton, IsExclusiveAndKnowsItsHolder) {
  Driver driver{without_background()};
  EXPECT_FALSE(driver.driven_by_this_thread());
  ASSERT_TRUE(driver.try_enter());
  EXPECT_TRUE(driver.driven_by_this_thread());
  std::thread([&] {
    EXPECT_FALSE(driver.try_enter());
    EXPECT_FALSE(driver.driven_by_this_thread());
    EXPECT_FALSE(driver.progress());
  }).join();
  driver.leave();
  ASSERT_TRUE(driver.try_enter());
  driver.leave();
}

TEST(DriverBaton, AGuardGetsItFromASleepingWaiter) {
  Driver driver{DriverOptions{}};
  Flag done{0};
  int guarded = 0;
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i) waiters.emplace_back([&] { EXPECT_TRUE(driver.wait(done, soon())); });
  std::vector<std::thread> guards;
  for (int i = 0; i < 3; ++i) {
    guards.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        const DriverGuard guard(driver);
        ++guarded;  // the baton is all that protects it
      }
    });
  }
  for (auto& guard : guards) guard.join();
  set(driver, done);
  for (auto& waiter : waiters) waiter.join();
  EXPECT_EQ(guarded, 300);
}

TEST(DriverPost, RunsInOrderWithoutAnyCaller) {
  Driver driver{DriverOptions{}};
  std::vector<int> order;
  std::vector<Task> tasks;
  Flag done{0};
  for (int i = 0; i < 100; ++i) {
    tasks.emplace_back([&, i] {
      order.push_back(i);
      if (i == 99) set(driver, done);
    });
  }
  for (auto& task : tasks) driver.post(task);
  while (done.load() == 0) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(DriverPost, ReachesASleepingWaiter) {
  Driver driver{without_background()};
  for (int round = 0; round < 100; ++round) {
    Flag done{0};
    Task task([&] { set(driver, done); });
    std::thread waiter([&] { EXPECT_TRUE(driver.wait(done, soon())); });
    if (round % 2 == 0) std::this_thread::sleep_for(500us);
    driver.post(task);
    waiter.join();
  }
}

TEST(DriverPost, IsNotLostWhileTheBatonChangesHands) {
  Driver driver{DriverOptions{}};
  constexpr int posts = 20'000;
  std::atomic<bool> over{false};
  std::thread churn([&] {
    while (!over.load()) {
      if (driver.try_enter()) driver.leave();
    }
  });
  std::atomic<int> ran{0};
  for (int i = 0; i < posts; ++i) {
    Flag done{0};
    Task task([&] {
      ran.fetch_add(1);
      done.store(1);
    });
    driver.post(task);
    const Deadline limit = soon();
    while (done.load() == 0 && !limit.expired()) std::this_thread::yield();
    ASSERT_EQ(done.load(), 1u) << "post " << i;
  }
  over = true;
  churn.join();
  EXPECT_EQ(ran.load(), posts);
}

TEST(DriverBackground, DrivesWhenNoCallerDoes) {
  Driver driver{DriverOptions{}};
  Pipe pipe(driver);
  for (int round = 1; round <= 20; ++round) {
    pipe.write_byte();
    const Deadline limit = soon();
    while (pipe.received.load() < round && !limit.expired()) std::this_thread::sleep_for(1ms);
    ASSERT_EQ(pipe.received.load(), round);
    // Callers come and go in between; it must come back every time.
    if (round % 3 == 0) driver.progress();
    if (round % 4 == 0) {
      Flag never{0};
      driver.wait(never, Deadline::after(2ms));
    }
  }
}

TEST(DriverBackground, PollsAtDeadlinesSetByCallersThatLeft) {
  Driver driver{DriverOptions{}};
  Polled polled(driver);
  std::this_thread::sleep_for(5ms);  // it sleeps by now, with no deadline
  std::atomic<bool> fired{false};
  {
    const DriverGuard guard(driver);
    polled.deadline = Deadline::after(10ms);
    polled.on_poll = [&] {
      if (!polled.deadline.expired()) return false;
      polled.deadline = Deadline::never();
      fired = true;
      return true;
    };
  }
  const Deadline limit = soon();
  while (!fired.load() && !limit.expired()) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(fired.load());
}

TEST(DriverBackground, CostsNothingWhileIdleAndLittleBesideAWaiter) {
  Driver driver{DriverOptions{}};
  Pipe pipe(driver);
  Polled polled(driver);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  std::this_thread::sleep_for(300ms);
  Flag never{0};
  EXPECT_FALSE(driver.wait(never, Deadline::after(300ms)));
  getrusage(RUSAGE_SELF, &after);
  const auto used = std::chrono::seconds(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                    std::chrono::microseconds(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
                    std::chrono::seconds(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                    std::chrono::microseconds(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
  EXPECT_LT(used, 150ms);  // of 600: nothing spins
  EXPECT_LT(polled.passes.load(), 100'000);
}

TEST(DriverBackground, StopsAndLeavesDrivingToCallers) {
  Driver driver{DriverOptions{}};
  Pipe pipe(driver);
  driver.stop();
  driver.stop();
  pipe.write_byte();
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(pipe.received.load(), 0);
  EXPECT_TRUE(driver.progress());
  EXPECT_EQ(pipe.received.load(), 1);
}

// A host with an event loop of its own: it sleeps on the descriptor and calls progress, nothing else.
class HostLoop {
 public:
  explicit HostLoop(Driver& driver) : driver_(driver) {}
  bool run_until(const std::function<bool()>& over) {
    const Deadline limit = soon();
    while (!over()) {
      pollfd watched{driver_.descriptor(), POLLIN, 0};
      if (limit.expired() || poll(&watched, 1, 30'000) == 0) return false;
      driver_.progress();
    }
    return true;
  }

 private:
  Driver& driver_;
};

TEST(DriverDescriptor, BecomesReadableForSocketsTasksAndDeadlines) {
  Driver driver{without_background()};
  HostLoop host(driver);
  Pipe pipe(driver);
  pipe.write_byte();
  EXPECT_TRUE(host.run_until([&] { return pipe.received.load() == 1; }));

  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> ran{false};
    Task task([&] { ran = true; });
    std::thread poster([&] { driver.post(task); });
    EXPECT_TRUE(host.run_until([&] { return ran.load(); }));
    poster.join();
  }

  Polled polled(driver);
  bool fired = false;
  {
    const DriverGuard guard(driver);
    polled.deadline = Deadline::after(10ms);
    polled.on_poll = [&] {
      if (!polled.deadline.expired()) return false;
      polled.deadline = Deadline::never();
      return fired = true;
    };
  }
  EXPECT_TRUE(host.run_until([&] { return fired; }));
}

TEST(DriverWatch, HandlersMayUnwatchEachOther) {
  Driver driver{without_background()};
  Pipe a(driver), b(driver), c(driver);
  std::vector<Pipe*> all = {&a, &b, &c};
  int calls = 0;
  for (Pipe* pipe : all) {
    pipe->then = [&, pipe] {
      ++calls;
      for (Pipe* other : all) {
        if (other != pipe) driver.unwatch(other->watched());
      }
    };
  }
  for (Pipe* pipe : all) pipe->write_byte();
  driver.progress();
  EXPECT_EQ(calls, 1);
}

TEST(DriverFork, AChildIsToldAndDoesNotHang) {
  auto driver = std::make_unique<Driver>(DriverOptions{});
  Pipe pipe(*driver);
  Flag never{0};
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool told = driver->forked() && !driver->wait(never, soon()) && !driver->try_enter();
    char byte;
    const bool closed = read(pipe.watched(), &byte, 1) == 0;  // /dev/null now
    driver.reset();
    _exit(told && closed ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_FALSE(driver->forked());
  // The parent's descriptors are untouched by what the child did.
  Flag done{0};
  pipe.then = [&] { set(*driver, done); };
  pipe.write_byte();
  EXPECT_TRUE(driver->wait(done, soon()));
}

TEST(DriverStress, WaitersPostersGuardsAndHosts) {
  DriverOptions options;
  options.grace = 100us;
  options.spin = 5us;
  Driver driver{options};
  Pipe pipe(driver);
  std::atomic<bool> over{false};
  std::uint64_t guarded = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(i));
      for (int round = 0; round < 400; ++round) {
        Flag done{0};
        Task task([&] { set(driver, done); });
        driver.post(task);
        if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
        EXPECT_TRUE(driver.wait(done, soon()));
        if (random() % 8 == 0) pipe.write_byte();
      }
    });
  }
  threads.emplace_back([&] {
    for (int round = 0; round < 400; ++round) {
      const DriverGuard guard(driver);
      ++guarded;
    }
  });
  std::thread host([&] {
    while (!over.load()) {
      driver.progress();
      driver.wake();
      std::this_thread::sleep_for(50us);
    }
  });
  for (auto& thread : threads) thread.join();
  over = true;
  host.join();
  EXPECT_EQ(guarded, 400u);
}

}  // namespace
}  // namespace tutti
