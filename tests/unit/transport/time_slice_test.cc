// Tests that waiting threads get short time slices if the driver's options say so.
#include <cstdint>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/transport/driver_fixtures.h"

namespace tutti {
namespace {

// Returns the time slice of the calling thread in nanoseconds, or 0 if the kernel does not tell it.
std::uint64_t slice_of_this_thread() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return 0;
  return attributes.runtime;
}

// Returns the time slice of a new thread after it has waited in vain.
std::uint64_t slice_after_waiting(bool short_slices) {
  DriverOptions options;
  options.short_slices = short_slices;
  Driver driver{options};
  std::uint64_t slice = 0;
  std::thread([&] {
    Flag never{0};
    EXPECT_FALSE(driver.wait(never, Deadline::after(1ms)));
    slice = slice_of_this_thread();
  }).join();
  return slice;
}

TEST(TimeSlice, OfAWaitingThreadIsShortIfTheOptionsSaySo) {
  if (slice_of_this_thread() == 0) GTEST_SKIP() << "this kernel does not tell the length of time slices";
  EXPECT_EQ(slice_after_waiting(true), 100'000u);
}

TEST(TimeSlice, OfAWaitingThreadStaysAsItIsOtherwise) {
  EXPECT_EQ(slice_after_waiting(false), slice_of_this_thread());
}

}  // namespace
}  // namespace tutti
