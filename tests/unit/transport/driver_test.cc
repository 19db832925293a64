#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/transport/driver_fixtures.h"

namespace tutti {
namespace {

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
        // The thread that drives handles this byte, even if another thread waits for the flag.
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
    second.write_byte();  // b notices this byte only if b took over driving from a
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
        ++guarded;  // only the guard protects this counter
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

// Returns the largest number of passes until a waiter notices a byte, while an object waits for a
// change in memory. `descriptors` says whether an object also expects data at descriptors.
int passes_until_noticed(bool descriptors) {
  DriverOptions options = without_background();
  options.spin = 0ns;
  Driver driver{options};
  Pipe pipe(driver);
  Polled polled(driver);
  Flag done{0};
  polled.memory = true;
  polled.descriptors = descriptors;
  constexpr int bytes = 200;
  // This many passes lie between two bytes. The number has no divisor in common with the number of passes
  // between two checks of descriptors. So bytes come at every possible distance from the next check.
  constexpr int pause = 21;
  int written_at = 0, most = 0;
  polled.on_poll = [&] {
    if (polled.passes.load() - written_at < pause || pipe.received.load() == bytes) return false;
    written_at = polled.passes.load();
    pipe.write_byte();
    return false;
  };
  pipe.then = [&] {
    most = std::max(most, polled.passes.load() - written_at);
    if (pipe.received.load() == bytes) set(driver, done);
  };
  polled.deadline = Deadline::after(0ns);  // the driver does not sleep for long
  EXPECT_TRUE(driver.wait(done, soon()));
  return most;
}

TEST(Driver, AsksTheKernelLessOftenWhileItWaitsForMemory) {
  EXPECT_LE(passes_until_noticed(true), 1);
  EXPECT_LE(passes_until_noticed(false), 16);
}

}  // namespace
}  // namespace tutti
