// Tests which connection survives if two ranks connect to each other at the same time.
#include "transport/meeting/crossing.h"

#include <gtest/gtest.h>

namespace tutti::meeting {
namespace {

TEST(Crossing, TheLowerRanksConnectionSurvives) {
  EXPECT_EQ(judge_incoming(1, 2, {.connecting = true}), Incoming::wait);
  EXPECT_EQ(judge_incoming(2, 1, {.connecting = true}), Incoming::welcome);
}

TEST(Crossing, WhoIsNotConnectingTakesTheOthersConnection) {
  EXPECT_EQ(judge_incoming(1, 2, {}), Incoming::welcome);
  EXPECT_EQ(judge_incoming(2, 1, {}), Incoming::welcome);
}

TEST(Crossing, AnExistingConnectionStays) {
  for (const int peer : {0, 2}) {
    EXPECT_EQ(judge_incoming(1, peer, {.connected = true}), Incoming::connected);
    EXPECT_EQ(judge_incoming(1, peer, {.gone = true}), Incoming::gone);
    EXPECT_EQ(judge_incoming(1, peer, {.gone = true, .connected = true, .connecting = true}), Incoming::gone);
  }
}

// If both ranks are connecting, exactly one of the two connections is welcome.
TEST(Crossing, OneOfTwoSurvives) {
  const bool at_lower = judge_incoming(3, 5, {.connecting = true}) == Incoming::welcome;
  const bool at_higher = judge_incoming(5, 3, {.connecting = true}) == Incoming::welcome;
  EXPECT_NE(at_lower, at_higher);
}

}  // namespace
}  // namespace tutti::meeting
