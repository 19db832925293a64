// Tests that the driver polls objects without a descriptor at the deadlines that they set (see
// docs/seams/sleep.md).
#include <algorithm>
#include <csignal>
#include <thread>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "tests/unit/transport/driver_fixtures.h"
#include "transport/driver/poller.h"

namespace tutti {
namespace {

// If sleeps are rounded to whole milliseconds, a `Ticker` ticks at most this often in a second.
constexpr int most_in_milliseconds = 1000;

DriverOptions sleeping_at_once() {
  DriverOptions options;
  options.spin = options.yield = 0ns;
  return options;
}

// A `Ticker` asks to be polled every 100 microseconds.
class Ticker {
 public:
  explicit Ticker(Driver& driver) : polled_(driver) {
    const DriverGuard guard(driver);
    polled_.deadline = Deadline::after(period);
    polled_.on_poll = [this] {
      if (!polled_.deadline.expired()) return false;
      polled_.deadline = Deadline::after(period);
      ticks_.fetch_add(1);
      return true;
    };
    driver.wake();
  }
  int ticks() const { return ticks_.load(); }
  int passes() const { return polled_.passes.load(); }

 private:
  static constexpr std::chrono::nanoseconds period = 100us;
  Polled polled_;
  std::atomic<int> ticks_{0};
};

// Calls `pass_a_second` until the ticker ticks more than `most_in_milliseconds` times in one call. A loaded
// machine may need several calls. Also checks that the driver slept between ticks.
template <typename PassASecond>
void expect_to_tick_in_microseconds(const Ticker& ticker, PassASecond pass_a_second) {
  int most = 0;
  for (int second = 0; second < 30 && most <= most_in_milliseconds; ++second) {
    const int before = ticker.ticks();
    pass_a_second();
    most = std::max(most, ticker.ticks() - before);
  }
  EXPECT_GT(most, most_in_milliseconds);
  EXPECT_LT(ticker.passes(), 20 * ticker.ticks());
}

TEST(DriverSleep, OfAWaiterIsNotRoundedToMilliseconds) {
  DriverOptions options = sleeping_at_once();
  options.background = false;
  Driver driver{options};
  const Ticker ticker(driver);
  Flag never{0};
  expect_to_tick_in_microseconds(ticker, [&] { EXPECT_FALSE(driver.wait(never, Deadline::after(1s))); });
}

TEST(DriverSleep, OfTheBackgroundThreadIsNotRoundedToMilliseconds) {
  Driver driver{sleeping_at_once()};
  const Ticker ticker(driver);
  expect_to_tick_in_microseconds(ticker, [] { std::this_thread::sleep_for(1s); });
}

TEST(DriverSleep, OfAnEventLoopIsNotRoundedToMilliseconds) {
  DriverOptions options = sleeping_at_once();
  options.background = false;
  Driver driver{options};
  const Ticker ticker(driver);
  expect_to_tick_in_microseconds(ticker, [&] {
    const Deadline second = Deadline::after(1s);
    while (!second.expired()) {
      pollfd watched{driver.descriptor(), POLLIN, 0};
      ASSERT_EQ(poll(&watched, 1, 30'000), 1);
      driver.progress();
    }
  });
}

// A caller calls `wake` if it has begun an operation and now computes. Without this call, the
// background thread would first wait until no caller has driven for some time, which is 30 seconds
// here.
TEST(DriverSleep, AWakeMakesTheBackgroundThreadKeepDeadlinesAtOnce) {
  DriverOptions options = sleeping_at_once();
  options.grace = 30s;
  Driver driver{options};
  Ticker ticker(driver);
  Flag never{0};
  for (int round = 0; round < 5; ++round) {
    driver.wait(never, Deadline::after(1ms));
    {
      const DriverGuard guard(driver);
      driver.wake();
    }
    const Deadline limit = Deadline::after(20s);
    const int before = ticker.ticks();
    while (ticker.ticks() < before + 10 && !limit.expired()) std::this_thread::sleep_for(1ms);
    EXPECT_GE(ticker.ticks(), before + 10);
  }
}

TEST(PollerSleep, EndsNotBeforeItsDeadline) {
  Poller poller;
  for (const auto time : {0us, 1us, 300us, 1000us, 1500us, 2999us, 30'700us}) {
    const Deadline deadline = Deadline::after(time);
    poller.sleep(deadline);
    EXPECT_TRUE(deadline.expired()) << time.count();
    EXPECT_FALSE(poller.deliver());
  }
}

// A `Bell` is a descriptor that any thread can make readable.
class Bell final : public DescriptorHandler {
 public:
  void on_ready(std::uint32_t) override {
    std::uint64_t count = 0;
    if (read(descriptor.get(), &count, sizeof count) > 0) ++rings;
  }
  void ring() const {
    const std::uint64_t one = 1;
    EXPECT_EQ(write(descriptor.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }

  const Descriptor descriptor{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  int rings = 0;
};

TEST(PollerSleep, EndsAtAnEventWhetherItsDeadlineIsNearOrFar) {
  Poller poller;
  Bell bell;
  ASSERT_TRUE(poller.watch(bell.descriptor.get(), EPOLLIN, bell).ok());
  for (const auto time : {900us, 60'000'000us}) {
    bell.rings = 0;
    std::thread ringer([&] {
      std::this_thread::sleep_for(3ms);
      bell.ring();
    });
    const Deadline limit = soon();
    while (bell.rings == 0 && !limit.expired()) {
      poller.sleep(Deadline::after(time));
      poller.deliver();
    }
    EXPECT_EQ(bell.rings, 1);
    ringer.join();
  }
  poller.unwatch(bell.descriptor.get());
}

TEST(PollerSleep, EndsWhenItIsRungThoughItHasNoDeadline) {
  Poller poller;
  poller.ring();
  poller.sleep(Deadline::never());
  EXPECT_FALSE(poller.deliver());  // a ring of the poller itself is not delivered
  const Deadline soon_over = Deadline::after(1500us);
  poller.sleep(soon_over);
  EXPECT_TRUE(soon_over.expired());  // the ring ended only the first sleep
}

}  // namespace
}  // namespace tutti
