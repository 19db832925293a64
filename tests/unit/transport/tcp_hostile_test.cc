#include <random>

#include "tests/support/greetings.h"
#include "tests/unit/transport/tcp_world.h"

namespace tutti::tcp {
namespace {

using namespace std::chrono_literals;
using conformance::collective;

TEST(TcpStrangers, AreClosedWithoutAWord) {
  Pair world;
  std::vector<std::string> greetings = test::greetings_of_others();
  greetings.insert(greetings.end(), {"tutti!\r\n" + std::string(40, '\0'), "tutti"});
  for (const std::string& greeting : greetings) {
    RawSocket stranger(world.addresses[0]);
    ASSERT_TRUE(stranger.connected());
    stranger.send(greeting);
    // This greeting may be the beginning of a hello, so its connection is not closed at once.
    if (greeting == "tutti") continue;
    EXPECT_TRUE(stranger.is_closed_silently()) << greeting.substr(0, 20);
  }
  expect_exchange(world[0], 0, world[1], 1, 0);
}

TEST(TcpStrangers, WhoSaysNothingIsClosedInTime) {
  Options options;
  options.handshake_timeout = 2s;
  Pair world(options);
  RawSocket silent(world.addresses[0]), slow(world.addresses[0]);
  const auto hello = encode(proper_hello(world, 1, 0));
  slow.send(std::span(hello).first(39));
  EXPECT_TRUE(silent.is_closed_silently());
  EXPECT_TRUE(slow.is_closed_silently());
  expect_exchange(world[0], 0, world[1], 1, 0);
}

TEST(TcpStrangers, ManyHalfOpenConnectionsNeitherGrowNorBlock) {
  Options options;
  // With this long timeout, the connections of strangers are closed only if there are too many of them.
  options.handshake_timeout = 1h;
  Pair world(options);
  const OpenSockets before = OpenSockets::now();
  std::vector<std::unique_ptr<RawSocket>> strangers;
  int connected = 0;
  for (int i = 0; i < 600; ++i) {
    strangers.push_back(std::make_unique<RawSocket>(world.addresses[0]));
    connected += strangers.back()->connected();
  }
  EXPECT_EQ(connected, 600);
  // Rank 0 closes the oldest connections to make room, and keeps the others open. The limit below
  // is the sum of our 600 ends, the listener's 256 ends, and one connection that is just being
  // accepted.
  EXPECT_TRUE(strangers.front()->is_closed_silently());
  EXPECT_LE(OpenSockets::now().connected - before.connected, 600 + 256 + 1);
  expect_exchange(world[0], 0, world[1], 1, 0);
  Recv recv(8, 1, collective(5));
  world[0].post(recv);
  strangers.clear();
  Send send(8, collective(5), 3);
  world[1].post(0, send);
  EXPECT_TRUE(recv.wait().ok());
}

// A distant rank needs some round trips to prove its identity. A nearer attacker can open many connections in
// that time. These connections must not displace the rank.
TEST(TcpStrangers, ACrowdFromOneAddressDisplacesItselfOnly) {
  Options options;
  options.handshake_timeout = 1h;
  Pair world(options);
  RawSocket far(world.addresses[0], "127.0.0.9");
  const auto hello = encode(proper_hello(world, 1, 0));
  far.send(std::span(hello).first(39));
  std::vector<std::unique_ptr<RawSocket>> crowd;
  for (int i = 0; i < 600; ++i) crowd.push_back(std::make_unique<RawSocket>(world.addresses[0]));
  EXPECT_TRUE(crowd.front()->is_closed_silently());
  far.send(std::span(hello).last(1));
  EXPECT_TRUE(far.verdict().has_value());
}

TEST(TcpStrangers, HellosOfTheWrongKindAreRefused) {
  Pair world({}, 3);
  const Hello good = proper_hello(world, 1, 0);
  std::vector<std::pair<Hello, Verdict>> cases;
  const auto add = [&](Verdict verdict, auto change) {
    Hello hello = good;
    change(hello);
    cases.emplace_back(hello, verdict);
  };
  add(Verdict::wrong_version, [](Hello& hello) { hello.version = handshake_version + 1; });
  add(Verdict::wrong_rank, [](Hello& hello) { hello.to = 1; });
  add(Verdict::wrong_rank, [](Hello& hello) { hello.from = 0; });
  add(Verdict::wrong_rank, [](Hello& hello) { hello.from = 3; });
  add(Verdict::wrong_rank, [](Hello& hello) { hello.from = 0xffffffff; });
  add(Verdict::stranger, [](Hello& hello) { ++hello.to_nonce; });
  add(Verdict::stranger, [](Hello& hello) { ++hello.from_nonce; });
  add(Verdict::stranger, [](Hello& hello) { hello.from = 2; });  // rank 2, but with rank 1's nonce
  add(Verdict::gone, [](Hello& hello) { hello.stripe = 1; });  // an additional connection without a first one
  for (const auto& [hello, verdict] : cases) {
    RawSocket stranger(world.addresses[0]);
    stranger.send(encode(hello));
    EXPECT_EQ(stranger.verdict(), verdict);
    EXPECT_TRUE(stranger.is_closed_silently());
  }
  expect_exchange(world[0], 0, world[1], 1, 0);
  expect_exchange(world[0], 0, world[2], 2, 1);
}

TEST(TcpStrangers, ASecondConnectionOfARankDoesNotDisturbTheFirst) {
  Pair world;
  expect_exchange(world[0], 0, world[1], 1, 0);
  for (std::uint64_t round = 1; round < 20; ++round) {
    RawSocket twin(world.addresses[0]);
    twin.send(encode(proper_hello(world, 1, 0)));
    EXPECT_EQ(twin.verdict(), Verdict::connected);
    EXPECT_TRUE(twin.is_closed_silently());
    expect_exchange(world[0], 0, world[1], 1, round);
  }
}

TEST(TcpStrangers, WhoIsWelcomeAndThenTalksNonsenseHurtsItselfOnly) {
  Pair world({}, 3);
  RawSocket rank_1(world.addresses[0]);
  rank_1.send(encode(proper_hello(world, 1, 0)));
  EXPECT_EQ(rank_1.verdict(), Verdict::welcome);
  Recv recv(8, 1, collective(0));
  world[0].post(recv);
  std::string nonsense(4096, '\0');
  std::mt19937 random(9);
  for (char& c : nonsense) c = static_cast<char>(random());
  rank_1.send(nonsense);
  EXPECT_EQ(recv.wait().code(), Code::protocol_error) << recv.status.to_string();
  expect_exchange(world[0], 0, world[2], 2, 1);
  // Rank 0 has given up on rank 1. The real rank 1 learns of it and does not wait.
  Send send(8, collective(2), 1);
  world[1].post(0, send);
  EXPECT_EQ(send.wait().code(), Code::peer_lost) << send.status.to_string();
}

}  // namespace
}  // namespace tutti::tcp
