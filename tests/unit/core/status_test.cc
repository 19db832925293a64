#include <chrono>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <tutti/deadline.h>
#include <tutti/status.h>

namespace tutti {
namespace {

using namespace std::chrono_literals;

TEST(Status, OkIsEmpty) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::ok);
  EXPECT_EQ(status.peer(), -1);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.to_string(), "ok");
  EXPECT_TRUE(status.with_context("while testing").ok());
}

TEST(Status, CarriesCodePeerAndText) {
  const Status status(Code::peer_lost, "rank 3 on host b is gone", 3);
  const Status copy = status.with_context("all_reduce #7");
  EXPECT_EQ(status.to_string(), "peer_lost: rank 3 on host b is gone");
  EXPECT_EQ(copy.to_string(), "peer_lost: all_reduce #7: rank 3 on host b is gone");
  EXPECT_EQ(copy.peer(), 3);
  EXPECT_EQ(copy.code(), Code::peer_lost);
}

// Control characters from a peer must not reach the terminal. They must also not begin a new line,
// which could look like a line of tutti.
TEST(Status, NothingControlsATerminal) {
  const Status status(Code::aborted, "rank 1 says: \x1b[2J\nok");
  EXPECT_EQ(status.message(), "rank 1 says: \\x1b[2J\\nok");
  EXPECT_EQ(status.with_context("a\rb").message(), "a\\rb: rank 1 says: \\x1b[2J\\nok");
  EXPECT_STREQ(Error(status).what(), "aborted: rank 1 says: \\x1b[2J\\nok");
}

TEST(Status, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(Code::internal); ++code) {
    EXPECT_NE(to_string(static_cast<Code>(code)), "unknown");
  }
  EXPECT_EQ(to_string(Code::protocol_error), "protocol_error");
}

TEST(Result, HoldsAValueOrAReason) {
  Result<std::unique_ptr<int>> good(std::make_unique<int>(4));
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(**good, 4);
  EXPECT_EQ(*std::move(good).take(), 4);
  Result<int> bad(Status(Code::timeout, "too late"));
  EXPECT_FALSE(bad.ok());
  try {
    (void)std::move(bad).take();
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::timeout);
    EXPECT_STREQ(error.what(), "timeout: too late");
  }
}

TEST(Deadline, IsAPointInTime) {
  EXPECT_TRUE(Deadline::after(0ns).expired());
  EXPECT_TRUE(Deadline::after(-5s).expired());
  EXPECT_EQ(Deadline::after(-5s).remaining(), 0ns);
  const Deadline later = Deadline::after(1h);
  EXPECT_FALSE(later.expired());
  EXPECT_GT(later.remaining(), 30min);
  EXPECT_LE(later.remaining(), 1h);
  EXPECT_EQ(earlier(later, Deadline::never()).when(), later.when());
}

TEST(Deadline, LongOnesNeverCome) {
  EXPECT_TRUE(Deadline::never().is_never());
  EXPECT_FALSE(Deadline::never().expired());
  EXPECT_TRUE(Deadline::after(std::chrono::nanoseconds::max()).is_never());
  EXPECT_GT(Deadline::never().remaining(), 24h);
}

}  // namespace
}  // namespace tutti
