#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/transport/driver_fixtures.h"

namespace tutti {
namespace {

TEST(DriverBackground, DrivesWhenNoCallerDoes) {
  Driver driver{DriverOptions{}};
  Pipe pipe(driver);
  for (int round = 1; round <= 20; ++round) {
    pipe.write_byte();
    const Deadline limit = soon();
    while (pipe.received.load() < round && !limit.expired()) std::this_thread::sleep_for(1ms);
    ASSERT_EQ(pipe.received.load(), round);
    // This thread also drives in some rounds. The background thread must take over again each time.
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
  // After this pause, the background thread sleeps without a deadline.
  std::this_thread::sleep_for(5ms);
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

TEST(DriverBackground, DoesNotSleepOnWhatATaskHasBroughtMeanwhile) {
  Driver driver{DriverOptions{}};
  std::atomic<bool> polled_after_task{false};
  bool posted = false;
  bool brought = false;  // only the driving thread uses `posted` and `brought`
  Task task([&] { brought = true; });
  Polled polled(driver);
  {
    const DriverGuard guard(driver);
    polled.on_poll = [&] {
      if (brought) polled_after_task = true;
      return false;
    };
    // The background thread asks whether work is left, and stops driving because the answer is no.
    // While it stops, it runs a task that brings new work.
    polled.work_left = [&] {
      if (!posted) driver.post(task);
      posted = true;
      return false;
    };
  }
  const Deadline limit = soon();
  while (!polled_after_task.load() && !limit.expired()) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(polled_after_task.load());
}

TEST(DriverBackground, EndsThoughTheProgramHasClosedItsDescriptors) {
  const auto descriptors = [] {
    std::set<int> open;
    for (int descriptor = 0; descriptor < 1024; ++descriptor) {
      if (fcntl(descriptor, F_GETFD) >= 0) open.insert(descriptor);
    }
    return open;
  };
  const std::set<int> before = descriptors();
  Driver driver{DriverOptions{}};
  std::this_thread::sleep_for(20ms);  // the background thread sleeps after this pause
  for (const int descriptor : descriptors()) {
    // This is a raw system call, because the thread sanitizer would report close() as a race.
    if (!before.contains(descriptor)) syscall(SYS_close, descriptor);
  }
  driver.stop();
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
  EXPECT_LT(used, 150ms);  // the processor time during 600 ms, so no thread spins
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

// `HostLoop` is the event loop of a program that uses tutti. It does nothing but sleep on the driver's
// descriptor and call `progress`.
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
    const bool closed = read(pipe.watched(), &byte, 1) == 0;  // in the child, the descriptor is /dev/null
    driver.reset();
    _exit(told && closed ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_FALSE(driver->forked());
  // The child has not changed the descriptors of the parent.
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
