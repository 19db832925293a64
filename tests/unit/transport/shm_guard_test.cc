// Tests the local sockets of ranks that have a token.
#include <gmock/gmock.h>

#include "tests/support/guards.h"
#include "tests/unit/transport/shm_world.h"

namespace tutti::shm {
namespace {

using conformance::collective;
using conformance::Recv;
using conformance::Send;
using security::Parties;
using security::Service;
using test::guard_of;
using test::holder_of;
using test::pass;
using ::testing::HasSubstr;

constexpr Parties one_to_zero{Service::memory, 1, 0};

Options with_token(const std::string& token) {
  Options options;
  if (!token.empty()) options.credentials = holder_of(token);
  return options;
}

void expect_message(World& world, int from, int to, std::uint64_t sequence) {
  Send send(100, collective(sequence), 1);
  Recv recv(100, from, collective(sequence));
  world[to].post(recv);
  world[from].post(to, send);
  EXPECT_TRUE(recv.wait().ok() && recv.holds(1)) << recv.status.to_string();
  EXPECT_TRUE(send.wait().ok()) << send.status.to_string();
}

TEST(ShmGuard, RanksWithTheSameTokenShareWhateverTheyLike) {
  World world(3, {}, with_token("secret"));
  expect_message(world, 0, 1, 0);
  expect_message(world, 2, 1, 1);
  std::vector<std::unique_ptr<Wish>> wishes;
  for (int rank = 0; rank < 3; ++rank)
    wishes.push_back(std::make_unique<Wish>(world[rank], ranks(3), 7, 10'000));
  for (auto& wish : wishes) wish->post();
  for (auto& wish : wishes) EXPECT_TRUE(wish->wait().ok()) << wish->status.to_string();
}

TEST(ShmGuard, RanksWithDifferentTokensFailOnBothSides) {
  World world({with_token("mine"), with_token("yours")});
  Send from_0(8, collective(0), 1), from_1(8, collective(0), 1);
  world[0].post(1, from_0);
  world[1].post(0, from_1);
  EXPECT_EQ(from_0.wait().code(), Code::unauthenticated) << from_0.status.to_string();
  EXPECT_EQ(from_1.wait().code(), Code::unauthenticated) << from_1.status.to_string();
  Wish wish(world[1], ranks(2), 7, 10'000);
  wish.post();
  EXPECT_EQ(wish.wait().code(), Code::unauthenticated) << wish.status.to_string();
  EXPECT_THAT(wish.status.message(), HasSubstr("another token"));
}

TEST(ShmGuard, WhoHasNoTokenIsNotListenedTo) {
  World world(2, {}, with_token("secret"));
  for (std::uint64_t round = 0; round < 10; ++round) {
    {
      RawPeer plain(world.peers[0].addresses.at("shm"));
      Note note;
      note.kind = NoteKind::connect;
      note.from = 1;
      note.from_nonce = parse_address(world.peers[1].addresses.at("shm"))->nonce;
      note.to_nonce = parse_address(world.peers[0].addresses.at("shm"))->nonce;
      plain.send(note);
      EXPECT_EQ(plain.receive(note), EBADMSG);  // a guard's message arrived instead
      EXPECT_TRUE(plain.is_closed());
    }
    {
      RawPeer other(world.peers[0].addresses.at("shm"));
      auto guard = guard_of("another", one_to_zero);
      EXPECT_EQ(pass(guard, other.descriptor()).code(), Code::unauthenticated);
    }
    {
      RawPeer liar(world.peers[0].addresses.at("shm"));
      auto guard = guard_of("secret", one_to_zero);
      ASSERT_TRUE(pass(guard, liar.descriptor()).ok());
      Note note;
      note.kind = NoteKind::connect;
      note.from = 5;
      liar.send(note);
      EXPECT_TRUE(liar.is_closed());
    }
    expect_message(world, 0, 1, round);
  }
}

}  // namespace
}  // namespace tutti::shm
