// Tests how a port hands out completions, and how many queue pairs it gives.
#include "transport/verbs/rail.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/verbs/provider/provider.h"
#include "transport/verbs/pipe.h"

namespace tutti::verbs {
namespace {

// An `IdleLoop` watches nothing, since the tests look for completions themselves.
struct IdleLoop final : EventLoop {
  Status watch(int, std::uint32_t, DescriptorHandler&) override { return {}; }
  void rewatch(int, std::uint32_t, DescriptorHandler&) override {}
  void unwatch(int) override {}
};

// An `Echo` answers each packet with a packet, as long as `left` is positive. Several echoes can share this
// counter.
struct Echo final : PipeEvents {
  explicit Echo(int& most) : left(most) {}
  void on_packet(std::span<const std::byte>) override {
    if (left-- > 0) pipe->probe();
  }
  void on_piece(std::uint32_t) override {}
  void on_room() override {}
  void on_written(OutgoingFrame&) override {}
  void on_permitted(std::uint32_t, const RemotePlace&) override {}
  void on_revoked(std::uint32_t) override {}
  void on_pipe_broken(Code, const std::string& why) override { ADD_FAILURE() << why; }

  int& left;
  std::unique_ptr<Pipe> pipe;
};

// Two pipes of one port answer each other's packets, so that there are always more completions.
TEST(VerbsRail, DrainingEndsAlthoughMoreCompletionsArrive) {
  const provider::Provider library({provider::ethernet_device("fake0", "10.0.0.1")});
  const Functions& functions = provider::Provider::functions();
  IdleLoop loop;
  const auto rail = Rail::create(functions, usable_ports(functions, PortFilter(), {}).take().front()).take();
  ASSERT_TRUE(rail->start(loop, 512).ok());
  const Memory memory(rail->domain());
  constexpr int most = 100'000;
  int left = most;
  Echo one(left), other(left);
  for (Echo* const echo : {&one, &other})
    echo->pipe = Pipe::create(*rail, memory, {{}, 32, 1024}, rail->port().gids.front(), *echo).take();
  ASSERT_TRUE(one.pipe->connect(other.pipe->end()).ok() && other.pipe->connect(one.pipe->end()).ok());
  for (int i = 0; i < 24; ++i) one.pipe->probe();
  rail->drain();
  EXPECT_LT(left, most);
  EXPECT_GT(left, 0);
  one.pipe->close();
  other.pipe->close();
  rail->stop();
}

// A completion queue that overflows cannot be used any more.
TEST(VerbsRail, ThereAreNoMoreQueuePairsThanTheQueueHasRoomFor) {
  const provider::Provider library({provider::ethernet_device("fake0", "10.0.0.1")});
  const Functions& functions = provider::Provider::functions();
  IdleLoop loop;
  const auto rail = Rail::create(functions, usable_ports(functions, PortFilter(), {}).take().front()).take();
  constexpr std::uint32_t slots = 32;
  ASSERT_TRUE(rail->start(loop, 2 * Pipe::most_requests(slots) - 1).ok());
  const Memory memory(rail->domain());
  int left = 0;
  Echo echo(left);
  const auto make = [&] {
    return Pipe::create(*rail, memory, {{}, slots, 1024}, rail->port().gids.front(), echo);
  };
  auto first = make();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(make().status().code(), Code::resource_exhausted);
  first->reset();
  EXPECT_TRUE(make().ok());
  rail->stop();
}

}  // namespace
}  // namespace tutti::verbs
