#include <algorithm>
#include <deque>

#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include "tests/unit/transport/tcp_segments.h"
#include "tests/unit/transport/tcp_world.h"

namespace tutti::tcp {
namespace {

constexpr std::size_t message_bytes = 8;

// Returns how many segments this process has sent, on all connections and from both of their ends.
std::uint32_t all_segments_sent() {
  std::uint32_t all = 0;
  for (const int descriptor : OpenSockets::descriptors(true)) all += segments_sent(descriptor);
  return all;
}

// Returns the number of this process's sockets that hold back small writes.
int waiting_sockets() {
  int all = 0;
  for (const int descriptor : OpenSockets::descriptors(true)) {
    int no_delay = 0;
    socklen_t length = sizeof no_delay;
    EXPECT_EQ(getsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &no_delay, &length), 0);
    all += no_delay == 0 ? 1 : 0;
  }
  return all;
}

// `Messages` are messages from rank 0 to rank 1.
class Messages {
 public:
  Messages(Pair& world, int count) : world_(world) {
    for (int i = 0; i < count; ++i) {
      const auto number = static_cast<std::uint64_t>(1000 + i);
      sends_.emplace_back(message_bytes, conformance::collective(number), i).driver = &world[0].driver;
      recvs_.emplace_back(message_bytes, 0, conformance::collective(number)).driver = &world[1].driver;
    }
  }
  // Sends all messages, one after the other. Only rank 0's driving thread may call this.
  void send() {
    for (Send& send : sends_) world_[0].mesh.send(1, send);
  }
  void receive() {
    for (Recv& recv : recvs_) world_[1].post(recv);
    int seed = 0;
    for (Recv& recv : recvs_) {
      EXPECT_TRUE(recv.wait().ok()) << recv.status.to_string();
      EXPECT_TRUE(recv.holds(seed++));
    }
  }
  bool have_left() const {
    return std::all_of(sends_.begin(), sends_.end(), [](const Send& send) { return send.over.load() != 0; });
  }

 private:
  Pair& world_;
  std::deque<Send> sends_;
  std::deque<Recv> recvs_;
};

void talk(Pair& world, int times) {
  for (int i = 0; i < times; ++i) {
    expect_exchange(world[0], 0, world[1], 1, static_cast<std::uint64_t>(i + 1), message_bytes);
  }
}

TEST(TcpCoalescing, WhatAPeerHasNotReadLeavesTogether) {
  Pair world;
  talk(world, 3);
  Messages messages(world, 200);
  world[0].drive([&] {
    const std::uint32_t before = all_segments_sent();
    world[1].drive([&] {  // holds rank 1's driver, so that rank 1 cannot read
      messages.send();
      EXPECT_TRUE(messages.have_left());
      EXPECT_EQ(waiting_sockets(), 1);
      // Two segments are the best case, but each acknowledgement releases another segment.
      EXPECT_LE(all_segments_sent() - before, 50u);
    });
    // The messages arrive, although rank 0 makes no progress meanwhile.
    messages.receive();
  });
}

TEST(TcpCoalescing, WhoWaitsSendsAtOnce) {
  Pair world;
  talk(world, 3);
  Messages messages(world, 20);
  world[0].drive([&] { messages.send(); });
  EXPECT_TRUE(world[0].until([] { return waiting_sockets() == 0; }));
  messages.receive();
  talk(world, 3);
  EXPECT_EQ(waiting_sockets(), 0);
}

TEST(TcpCoalescing, AFewMessagesAreSentAtOnce) {
  Pair world;
  talk(world, 3);
  Messages messages(world, 2);
  world[0].drive([&] {
    messages.send();
    EXPECT_EQ(waiting_sockets(), 0);
  });
  messages.receive();
}

}  // namespace
}  // namespace tutti::tcp
