// Tests that descriptor handlers and timers run on an io_context.
#include "tools/run/event_loop.h"

#include <array>
#include <functional>
#include <string>
#include <utility>

#include <asio/post.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/descriptor.h"

namespace tutti::tools {
namespace {

using namespace std::chrono_literals;
using Watching = std::function<void(std::uint32_t)>;

struct LoopHandler final : DescriptorHandler {
  explicit LoopHandler(Watching call) : call_(std::move(call)) {}
  void on_ready(std::uint32_t events) override { call_(events); }

 private:
  const Watching call_;
};

struct LoopTimer final : Timer {
  explicit LoopTimer(std::function<void()> call) : call_(std::move(call)) {}
  void on_timer() override { call_(); }

 private:
  const std::function<void()> call_;
};

class PipeEnds {
 public:
  PipeEnds() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    read_ = Descriptor(ends[0]);
    write_ = Descriptor(ends[1]);
  }
  int read_end() const { return read_.get(); }
  void write_byte() const { EXPECT_EQ(write(write_.get(), "x", 1), 1); }
  void read_byte() const {
    char byte = 0;
    EXPECT_EQ(read(read_.get(), &byte, 1), 1);
  }
  void close_write_end() { write_.reset(); }

 private:
  Descriptor read_, write_;
};

class AsioLoopTest : public testing::Test {
 protected:
  // Runs handlers until one of them stops `io_`.
  void run() {
    io_.restart();
    io_.run_for(30s);
    EXPECT_TRUE(io_.stopped()) << "nothing has stopped the loop within 30 s";
  }

  asio::io_context io_{1};
  AsioLoop loop_{io_};
};

TEST_F(AsioLoopTest, CallsAHandlerAsLongAsItsDescriptorIsReady) {
  PipeEnds pipe;
  int calls = 0;
  LoopHandler handler([&](std::uint32_t events) {
    EXPECT_EQ(events, EPOLLIN);
    if (++calls < 3) return;
    pipe.read_byte();
    io_.stop();
  });
  ASSERT_TRUE(loop_.watch(pipe.read_end(), EPOLLIN, handler).ok());
  pipe.write_byte();
  run();
  EXPECT_EQ(calls, 3);
  io_.restart();
  io_.run_for(20ms);
  EXPECT_EQ(calls, 3);
  loop_.unwatch(pipe.read_end());
}

TEST_F(AsioLoopTest, TellsThatTheOtherSideHasClosed) {
  PipeEnds pipe;
  LoopHandler handler([&](std::uint32_t events) {
    EXPECT_EQ(events, EPOLLHUP);
    io_.stop();
  });
  ASSERT_TRUE(loop_.watch(pipe.read_end(), EPOLLIN, handler).ok());
  pipe.close_write_end();
  run();
  loop_.unwatch(pipe.read_end());
}

TEST_F(AsioLoopTest, LetsOtherHandlersOfTheContextRunInBetween) {
  PipeEnds pipe;
  LoopHandler handler([](std::uint32_t) {});
  ASSERT_TRUE(loop_.watch(pipe.read_end(), EPOLLIN, handler).ok());
  pipe.write_byte();  // no handler reads this byte
  int posts = 0;
  const std::function<void()> post = [&] {
    if (++posts == 10) return io_.stop();
    asio::post(io_, post);
  };
  post();
  run();
  EXPECT_EQ(posts, 10);
  loop_.unwatch(pipe.read_end());
}

TEST_F(AsioLoopTest, RewatchChangesTheEventsAndTheHandler) {
  PipeEnds pipe;
  int first_calls = 0, second_calls = 0;
  LoopHandler first([&](std::uint32_t) { ++first_calls; });
  LoopHandler second([&](std::uint32_t) {
    ++second_calls;
    io_.stop();
  });
  ASSERT_TRUE(loop_.watch(pipe.read_end(), EPOLLIN, first).ok());
  loop_.rewatch(pipe.read_end(), 0, first);
  pipe.write_byte();
  io_.run_for(20ms);
  EXPECT_EQ(first_calls, 0);
  loop_.rewatch(pipe.read_end(), EPOLLIN, second);
  run();
  EXPECT_EQ(first_calls, 0);
  EXPECT_EQ(second_calls, 1);
  loop_.unwatch(pipe.read_end());
}

TEST_F(AsioLoopTest, AHandlerMayUnwatchADescriptorThatIsReadyToo) {
  PipeEnds left, right;
  int calls = 0;
  const Watching end_both = [&](std::uint32_t) {
    ++calls;
    loop_.unwatch(left.read_end());
    loop_.unwatch(right.read_end());
  };
  LoopHandler one(end_both), other(end_both);
  ASSERT_TRUE(loop_.watch(left.read_end(), EPOLLIN, one).ok());
  ASSERT_TRUE(loop_.watch(right.read_end(), EPOLLIN, other).ok());
  left.write_byte();
  right.write_byte();
  io_.run_for(20ms);
  EXPECT_EQ(calls, 1);
}

TEST_F(AsioLoopTest, RefusesWhatCannotBeWatched) {
  LoopHandler handler([](std::uint32_t) {});
  EXPECT_FALSE(loop_.watch(-1, EPOLLIN, handler).ok());
}

TEST_F(AsioLoopTest, CallsTimersInTheirOrder) {
  std::string order;
  LoopTimer late([&] {
    order += "late";
    io_.stop();
  });
  LoopTimer early([&] { order += "early "; });
  loop_.timers.set(late, Deadline::after(40ms));
  loop_.timers.set(early, Deadline::after(10ms));
  loop_.rearm();
  run();
  EXPECT_EQ(order, "early late");
}

TEST_F(AsioLoopTest, ATimerMaySetTimers) {
  LoopTimer second([&] { io_.stop(); });
  LoopTimer first([&] { loop_.timers.set(second, Deadline::after(5ms)); });
  loop_.timers.set(first, Deadline::after(0ms));
  loop_.rearm();
  run();
}

TEST_F(AsioLoopTest, NoticesATimerThatIsSetAfterWatching) {
  PipeEnds pipe;
  LoopHandler handler([](std::uint32_t) {});
  LoopTimer timer([&] { io_.stop(); });
  ASSERT_TRUE(loop_.watch(pipe.read_end(), EPOLLIN, handler).ok());
  loop_.timers.set(timer, Deadline::after(5ms));
  run();
  loop_.unwatch(pipe.read_end());
}

TEST(AsioLoopEnd, AContextMayOutliveItsLoop) {
  asio::io_context io{1};
  PipeEnds pipe;
  pipe.write_byte();
  int calls = 0;
  LoopHandler handler([&](std::uint32_t) { ++calls; });
  {
    AsioLoop loop(io);
    ASSERT_TRUE(loop.watch(pipe.read_end(), EPOLLIN, handler).ok());
    // `poll_one` finds the descriptor ready and queues the loop's handler. But it runs only the
    // empty handler, which was queued first.
    asio::post(io, [] {});
    io.poll_one();
    loop.unwatch(pipe.read_end());
  }
  io.run_for(30s);
  EXPECT_TRUE(io.stopped()) << "the loop has left work behind";
  EXPECT_LE(calls, 1);
}

}  // namespace
}  // namespace tutti::tools
