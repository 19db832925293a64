// Tests connections of ranks that have a token.
#include <gmock/gmock.h>

#include "tests/support/guards.h"
#include "tests/unit/transport/tcp_world.h"

namespace tutti::tcp {
namespace {

using conformance::collective;
using security::Parties;
using security::Service;
using test::guard_of;
using test::holder_of;
using test::pass;
using ::testing::HasSubstr;

Options with_token(const std::string& token) {
  Options options;
  if (!token.empty()) options.credentials = holder_of(token);
  return options;
}

constexpr Parties one_to_zero{Service::data, 1, 0};

TEST(TcpGuard, RanksWithTheSameTokenExchangeWhateverTheyLike) {
  Options options = with_token("secret");
  options.sockets = 3;
  Pair world(options, 3);
  expect_exchange(world[0], 0, world[1], 1, 0);
  expect_exchange(world[0], 0, world[2], 2, 1, 3'000'000);  // large enough to use additional connections
  expect_exchange(world[1], 1, world[2], 2, 2, 3'000'000);
}

TEST(TcpGuard, RanksWithDifferentTokensFailOnBothSides) {
  const std::vector<std::pair<std::string, std::string>> tokens = {
      {"mine", "yours"}, {"mine", ""}, {"", "yours"}};
  for (const auto& [left, right] : tokens) {
    Pair world({with_token(left), with_token(right)});
    Send from_0(8, collective(0), 1), from_1(8, collective(0), 1);
    world[0].post(1, from_0);
    world[1].post(0, from_1);
    EXPECT_EQ(from_0.wait().code(), Code::unauthenticated) << from_0.status.to_string();
    EXPECT_EQ(from_1.wait().code(), Code::unauthenticated) << from_1.status.to_string();
    EXPECT_THAT(from_0.status.message(), HasSubstr("token"));
  }
}

// Another job, which has a token, listens at one of the addresses of rank 1.
TEST(TcpGuard, ARankWithoutATokenGoesOnToTheNextAddress) {
  Pair others(with_token("secret"));
  const auto endpoints = [](const std::string& address) { return address.substr(0, address.find('/')); };
  auto zero = create({}).take(), one = create({}).take();
  const std::string address_0 = zero->address(), address_1 = one->address();
  const std::string both = endpoints(others.addresses[1]) + "," + address_1;
  {
    const auto node_0 = make_node(0, {peer_info(0, address_0), peer_info(1, both)}, std::move(zero));
    const auto node_1 = make_node(1, {peer_info(0, address_0), peer_info(1, address_1)}, std::move(one));
    Send send(8, collective(0), 1);
    Recv recv(8, 0, collective(0));
    node_1->post(recv);
    node_0->post(1, send);
    EXPECT_TRUE(send.wait().ok()) << send.status.to_string();
    EXPECT_TRUE(recv.wait().ok()) << recv.status.to_string();
    std::thread other([&] { node_1->shut_down(); });
    node_0->shut_down();
    other.join();
  }
  // Rank 1 has ended.
  auto again = create({}).take();
  const std::string address = again->address();
  const auto node =
      make_node(0, {peer_info(0, address), peer_info(1, both)}, std::move(again), std::chrono::hours(1));
  Send send(8, collective(0), 1);
  node->post(1, send);
  EXPECT_EQ(send.wait().code(), Code::unauthenticated) << send.status.to_string();
  EXPECT_THAT(send.status.message(), HasSubstr("the process at " + endpoints(others.addresses[1]) +
                                               " has denied a connection (it asks"));
  EXPECT_THAT(send.status.message(), HasSubstr("no process listens at"));
}

TEST(TcpGuard, StrangersAndHoldersOfOtherTokensDisturbNobody) {
  Pair world(with_token("secret"), 2);
  expect_exchange(world[0], 0, world[1], 1, 0);
  for (std::uint64_t round = 1; round < 10; ++round) {
    {
      RawSocket stranger(world.addresses[0]);
      stranger.send(std::string("GET / HTTP/1.1\r\n\r\n"));
      EXPECT_TRUE(stranger.is_closed_silently());
    }
    {  // A valid hello is refused, since no proof comes before it.
      RawSocket plain(world.addresses[0]);
      plain.send(encode(proper_hello(world, 1, 0)));
      const auto answer = plain.receive(security::Guard::message_bytes);
      const auto refusal = security::refusal_by_guard(answer, "rank 0");
      ASSERT_TRUE(refusal);
      EXPECT_EQ(refusal->code(), Code::unauthenticated);
      EXPECT_TRUE(plain.is_closed_silently());
    }
    {
      RawSocket other(world.addresses[0]);
      auto guard = guard_of("another", one_to_zero);
      EXPECT_EQ(pass(guard, other.descriptor()).code(), Code::unauthenticated);
      EXPECT_TRUE(other.is_closed_silently());
    }
    expect_exchange(world[0], 0, world[1], 1, round);
  }
}

TEST(TcpGuard, AReplayedHandshakeIsRefused) {
  Pair world(with_token("secret"), 2);
  // The test records the two messages of rank 1 to rank 0: the opening and the proof.
  std::vector<std::vector<std::byte>> said;
  {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    RawSocket ours(ends[0]), theirs(ends[1]), wire(world.addresses[0]);
    auto guard = guard_of("secret", one_to_zero);
    guard.advance(ours.descriptor());
    said.push_back(theirs.receive(security::Guard::message_bytes));
    wire.send(said.back());
    theirs.send(wire.receive(security::Guard::message_bytes));
    guard.advance(ours.descriptor());
    said.push_back(theirs.receive(security::digest_bytes));
    wire.send(said.back());
    theirs.send(wire.receive(security::Guard::message_bytes));
    ASSERT_TRUE(pass(guard, ours.descriptor()).ok());
  }
  RawSocket replay(world.addresses[0]);
  replay.send(said[0]);
  ASSERT_EQ(replay.receive(security::Guard::message_bytes).size(), security::Guard::message_bytes);
  replay.send(said[1]);
  const auto verdict = replay.receive(security::Guard::message_bytes);
  ASSERT_EQ(verdict.size(), security::Guard::message_bytes);
  EXPECT_EQ(verdict[11], std::byte{3});  // denied
  replay.send(encode(proper_hello(world, 1, 0)));
  EXPECT_TRUE(replay.is_closed_silently());
  expect_exchange(world[0], 0, world[1], 1, 0);
}

TEST(TcpGuard, WhoSaysThatItIsAnotherRankThanItHasProvedIsDropped) {
  Pair world(with_token("secret"), 3);
  RawSocket rank_1(world.addresses[0]);
  auto guard = guard_of("secret", one_to_zero);
  ASSERT_TRUE(pass(guard, rank_1.descriptor()).ok());
  rank_1.send(encode(proper_hello(world, 2, 0)));
  EXPECT_TRUE(rank_1.is_closed_silently());
  expect_exchange(world[0], 0, world[2], 2, 0);
}

}  // namespace
}  // namespace tutti::tcp
