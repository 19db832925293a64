// Tests how full a pipe makes the send queue of its queue pair.
#include "transport/verbs/pipe.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verbs/provider/provider.h"

namespace tutti::verbs {
namespace {

// An `UnwatchedLoop` watches nothing, since the test looks for completions itself.
struct UnwatchedLoop final : EventLoop {
  Status watch(int, std::uint32_t, DescriptorHandler&) override { return {}; }
  void rewatch(int, std::uint32_t, DescriptorHandler&) override {}
  void unwatch(int) override {}
};

// A `PipeEnd` is one end of a pipe. It counts what the pipe reports.
struct PipeEnd final : PipeEvents {
  void on_packet(std::span<const std::byte>) override { ++packets; }
  void on_piece(std::uint32_t) override { ++pieces; }
  void on_room() override {}
  void on_written(OutgoingFrame&) override { ++written; }
  void on_permitted(std::uint32_t, const RemotePlace&) override {}
  void on_revoked(std::uint32_t) override { ++revoked; }
  void on_pipe_broken(Code, const std::string& why) override { ADD_FAILURE() << why; }

  int packets = 0, pieces = 0, written = 0, revoked = 0;
  std::unique_ptr<Pipe> pipe;
};

// `JoinedPipes` are two pipes of one port that are connected with each other. Each has many receive slots, so
// that the room in the send queue runs out before the credit does.
class JoinedPipes : public testing::Test {
 protected:
  JoinedPipes() {
    rail_ = Rail::create(functions_, usable_ports(functions_, PortFilter(), {}).take().front()).take();
    EXPECT_TRUE(rail_->start(loop_, 4 * Pipe::most_requests(slots)).ok());
    memory_ = std::make_shared<Memory>(rail_->domain());
    registered_ = memory_->add(bytes_).take();
    for (PipeEnd* const end : {&one_, &other_})
      end->pipe = Pipe::create(*rail_, *memory_, {{}, slots, 1024}, rail_->port().gids.front(), *end).take();
    EXPECT_TRUE(one_.pipe->connect(other_.pipe->end()).ok() && other_.pipe->connect(one_.pipe->end()).ok());
  }
  ~JoinedPipes() override {
    one_.pipe->close();
    other_.pipe->close();
    rail_->stop();
    EXPECT_THAT(library_.record().mistakes, testing::IsEmpty());
  }
  std::uint64_t sends() { return library_.record().traffic.sends; }
  // Sends empty packets until there is no room for another one. Returns how many were sent.
  std::uint64_t fill_up() {
    const std::uint64_t before = sends();
    for (std::uint64_t last = before - 1; sends() != last; one_.pipe->probe()) last = sends();
    return sends() - before;
  }

  static constexpr std::uint32_t slots = 256;
  provider::Provider library_{{provider::ethernet_device("fake0", "10.0.0.1")}};
  const Functions& functions_ = provider::Provider::functions();
  UnwatchedLoop loop_;
  std::unique_ptr<Rail> rail_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(4096);
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<RegisteredMemory> registered_;
  PipeEnd one_, other_;
};

// The queue is full, except for the room that is kept for windows. A write in place must not take that room.
TEST_F(JoinedPipes, AWriteInPlaceLeavesTheRoomForWindows) {
  library_.hold();
  const std::uint64_t most = fill_up();
  library_.release();
  rail_->drain();
  ASSERT_EQ(other_.packets, static_cast<int>(most));

  OutgoingFrame frame;
  frame.payload = std::span(bytes_).first(1024);
  frame.route = PayloadRoute::remote_write;
  ASSERT_EQ(other_.pipe->permit(1, std::span(bytes_).last(1024), nullptr, frame.place),
            Permits::Answer::given);
  library_.hold();
  EXPECT_EQ(fill_up(), most);
  EXPECT_EQ(one_.pipe->write(frame), Pipe::Outcome::full);
  for (std::uint32_t number = 0; number < Windows::most; ++number) {
    RemotePlace place;
    EXPECT_EQ(one_.pipe->permit(number, bytes_, nullptr, place), Permits::Answer::given);
    EXPECT_FALSE(one_.pipe->revoke(number));
  }
  library_.release();
  rail_->drain();
  EXPECT_EQ(one_.revoked, static_cast<int>(Windows::most));
  EXPECT_EQ(one_.pipe->write(frame), Pipe::Outcome::reading);
  rail_->drain();
  EXPECT_EQ(one_.written, 1);
  EXPECT_EQ(other_.packets, static_cast<int>(2 * most));
  EXPECT_EQ(other_.pieces, 1);
}

}  // namespace
}  // namespace tutti::verbs
