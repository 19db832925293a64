// Tests ranks whose attempts to connect end before there is a connection.
#include <array>
#include <chrono>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/guards.h"
#include "tests/verbs/lone_rank.h"
#include "transport/verbs/factory.h"

namespace tutti::verbs {
namespace {

using testing::HasSubstr;

// The test plays rank 1, which connects a second time. Rank 0 has not noticed that the first attempt is over.
TEST(VerbsRetry, APeerThatConnectsAgainIsWelcome) {
  const LoneRank rank;
  RawPeer first(rank.address()), second(rank.address());
  EXPECT_EQ(first.ask(rank.hello()).kind, NoteKind::welcome);
  const Note answer = second.ask(rank.hello());
  EXPECT_EQ(answer.kind, NoteKind::welcome) << answer.why.failure(0).to_string();
}

// The test plays programs that answer at the two addresses of rank 1 and close each connection.
TEST(VerbsRetry, TheNextAddressOfThePeerIsTried) {
  const std::array<Door, 2> doors;
  LoneRank rank({doors[0].address(), doors[1].address()});
  conformance::Send send(8, conformance::collective(1), 0);
  rank.node().post(1, send);
  EXPECT_TRUE(doors[0].turn_away());
  EXPECT_TRUE(doors[1].turn_away());
  rank.node().mesh.shutdown(Deadline::after(std::chrono::seconds(0)));
}

// At the first address of rank 1, the test plays a guard that belongs to somebody else. Rank 0 has no token.
TEST(VerbsRetry, ANoticeAtOneAddressDoesNotEndTheAttempts) {
  const std::array<Door, 2> doors;
  LoneRank rank({doors[0].address(), doors[1].address()});
  conformance::Send send(8, conformance::collective(1), 0);
  rank.node().post(1, send);
  for (int round = 0; round < 2; ++round) {
    doors[0].deny();
    ASSERT_TRUE(doors[1].turn_away());
  }
  doors[0].deny();
  doors[1].deny();
  EXPECT_EQ(send.wait().code(), Code::unauthenticated) << send.status.to_string();
}

// The test plays rank 1, which has connected to rank 0, and refuses the connection of rank 0. Rank 0
// reads the refusal before it reads rank 1's hello. So when it reads the hello, it has gone over to tcp, but
// its verbs channel still exists.
TEST(VerbsRetry, ARankThatHasGoneOverToTcpSaysSo) {
  const Door door;
  LoneRank rank({door.address()}, true);
  RawPeer peer(rank.address());
  conformance::Send send(8, conformance::collective(1), 0);
  rank.node().post(1, send);
  const Descriptor guest = door.let_in();
  rank.node().drive([&] {
    Door::refuse(guest, Status(Code::unsupported, "no address of that kind"));
    peer.say(rank.hello());
  });
  const Note answer = peer.hear();
  EXPECT_EQ(answer.kind, NoteKind::refused);
  EXPECT_EQ(answer.why.failure(0).code(), Code::unreachable) << answer.why.failure(0).to_string();
  EXPECT_THAT(answer.why.failure(0).message(), HasSubstr("does not use verbs"));
  rank.node().mesh.shutdown(Deadline::after(std::chrono::seconds(0)));
}

// Rank 1 has a token, and rank 0 has none.
class TokenOfRank1 final : public conformance::TransportFixture {
 public:
  std::string name() const override { return "verbs"; }
  std::unique_ptr<tutti::Transport> create(int rank, bool, const MessageLimits& limits) override {
    Options options;
    options.functions = &provider::Provider::functions();
    options.settings.devices = "=fake" + std::to_string(rank);
    options.limits = limits;
    if (rank == 1) options.credentials = test::holder_of("secret");
    return verbs::create(options).take();
  }
};

TEST(VerbsRetry, ARankWithoutTheTokenIsToldSo) {
  const provider::Provider library(
      {provider::ethernet_device("fake0", "10.0.0.1"), provider::ethernet_device("fake1", "10.0.0.2")});
  conformance::World world(
      [] { return std::unique_ptr<conformance::TransportFixture>(std::make_unique<TokenOfRank1>()); }, 2);
  conformance::Send send(8, conformance::collective(1), 0);
  world[0].post(1, send);
  EXPECT_EQ(send.wait().code(), Code::unauthenticated) << send.status.to_string();
  EXPECT_THAT(send.status.message(), HasSubstr("asks for a token, and this process has none"));
}

}  // namespace
}  // namespace tutti::verbs
