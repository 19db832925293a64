#include <algorithm>
#include <map>

#include "tests/unit/transport/tcp_world.h"

// This file tests large messages, whose payloads also use additional connections (stripes). The channel
// conformance tests also run over stripes.
namespace tutti::tcp {
namespace {

using conformance::collective;

constexpr std::size_t large = 5'000'000;

Options with_sockets(int sockets, int buffer = 0) {
  Options options;
  options.sockets = sockets;
  options.socket_buffer = buffer;
  return options;
}

int connections() { return static_cast<int>(OpenSockets::descriptors(true).size()); }

TEST(TcpStripes, AreOpenedByTheFirstLargeMessage) {
  Pair world(with_sockets(3));
  expect_exchange(world[0], 0, world[1], 1, 1, 200'000);
  EXPECT_EQ(connections(), 2);
  for (std::uint64_t i = 2; i < 5; ++i) expect_exchange(world[0], 0, world[1], 1, i, large);
  // The number counts both ends of five connections: the first connection, and two more for each
  // direction.
  EXPECT_TRUE(world[0].until([] { return connections() == 2 * (1 + 2 + 2); })) << connections();
  for (std::uint64_t i = 5; i < 10; ++i) expect_exchange(world[0], 0, world[1], 1, i, large);
  EXPECT_EQ(connections(), 10);
}

// Each direction has one connection for each address of a rank. Within a direction, no two connections use
// the same address. The first connection serves both directions.
TEST(TcpStripes, UseEveryAddress) {
  Options options;
  options.bind = {"127.0.0.1", "127.0.0.2", "127.0.0.3"};
  Pair world(options);
  for (std::uint64_t i = 1; i < 4; ++i) expect_exchange(world[0], 0, world[1], 1, i, large);
  EXPECT_TRUE(world[0].until([] { return connections() == 10; })) << connections();
  std::map<std::string, int> ends;
  for (const int descriptor : OpenSockets::descriptors(true)) {
    sockaddr_in at{};
    socklen_t length = sizeof at;
    ASSERT_EQ(getpeername(descriptor, reinterpret_cast<sockaddr*>(&at), &length), 0);
    ++ends[inet_ntoa(at.sin_addr)];
  }
  EXPECT_EQ(ends["127.0.0.1"], 2);
  EXPECT_EQ(ends["127.0.0.2"], 4);
  EXPECT_EQ(ends["127.0.0.3"], 4);
}

// Small buffers split payloads at any place, even inside an element.
TEST(TcpStripes, ReduceWhatComesInPieces) {
  Pair world(with_sockets(4, 5000));
  constexpr std::size_t count = 500'000;
  const ReduceOp sum = ReduceOp::sum;
  const Reducer reducer(DataType::float64, sum);
  for (std::uint64_t round = 1; round < 4; ++round) {
    Send send(count * sizeof(double), collective(round), 0);
    Recv recv(count * sizeof(double), 0, collective(round));
    std::vector<double> sent(count), local(count);
    for (std::size_t i = 0; i < count; ++i) {
      sent[i] = static_cast<double>(i);
      local[i] = static_cast<double>(2 * i + round);
    }
    send.data = reinterpret_cast<const std::byte*>(sent.data());
    recv.sink.local = reinterpret_cast<const std::byte*>(local.data());
    recv.sink.reducer = &reducer;
    world[1].post(recv);
    world[0].post(1, send);
    std::thread other([&] { EXPECT_TRUE(send.wait().ok()) << send.status.to_string(); });
    ASSERT_TRUE(recv.wait().ok()) << recv.status.to_string();
    other.join();
    const auto* got = reinterpret_cast<const double*>(recv.memory.data());
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(got[i], sent[i] + local[i]) << i;
    }
  }
}

TEST(TcpStripes, AGoodbyeDoesNotOvertakePayloads) {
  for (int round = 0; round < 10; ++round) {
    Pair world(with_sockets(3));
    expect_exchange(world[0], 0, world[1], 1, 1, large);
    Send send(large, collective(2), 5);
    Recv recv(large, 0, collective(2));
    world[1].post(recv);
    std::thread leaver([&] {
      world[0].post(1, send);
      EXPECT_TRUE(send.wait().ok()) << send.status.to_string();
      world[0].shut_down();
    });
    EXPECT_TRUE(recv.wait().ok()) << recv.status.to_string();
    EXPECT_TRUE(recv.holds(5));
    leaver.join();
  }
}

TEST(TcpStripes, ALostOneFailsTheChannel) {
  Pair world(with_sockets(2));
  expect_exchange(world[0], 0, world[1], 1, 1, large);
  ASSERT_TRUE(world[0].until([] { return connections() == 6; })) << connections();
  const auto all = OpenSockets::descriptors(true);
  Recv waits(large, 0, collective(7)), too(large, 1, collective(7));
  world[1].post(waits);
  world[0].post(too);
  // The newest connection is a stripe.
  ASSERT_EQ(shutdown(*std::max_element(all.begin(), all.end()), SHUT_RDWR), 0);
  Send more(large, collective(8), 1), back(large, collective(8), 1);
  world[0].post(1, more);
  world[1].post(0, back);
  std::thread other([&] { EXPECT_EQ(too.wait().code(), Code::peer_lost) << too.status.to_string(); });
  EXPECT_EQ(waits.wait().code(), Code::peer_lost) << waits.status.to_string();
  other.join();
  EXPECT_EQ(waits.status.peer(), 0);
}

}  // namespace
}  // namespace tutti::tcp
