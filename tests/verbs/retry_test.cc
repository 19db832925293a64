// Tests ranks whose attempts to connect end before there is a connection.
#include <array>
#include <chrono>

#include <gtest/gtest.h>

#include "tests/verbs/lone_rank.h"

namespace tutti::verbs {
namespace {

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

}  // namespace
}  // namespace tutti::verbs
