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

// At most one of two crossing connections may be welcome, in all states of the two ranks.
TEST(Crossing, NeverBothSurvive) {
  for (const bool lower_tries : {false, true}) {
    for (const bool higher_tries : {false, true}) {
      const Incoming at_lower = judge_incoming(3, 5, {.connecting = lower_tries});
      const Incoming at_higher = judge_incoming(5, 3, {.connecting = higher_tries});
      const bool both = at_lower == Incoming::welcome && at_higher == Incoming::welcome;
      EXPECT_FALSE(both && lower_tries && higher_tries);
    }
  }
}

}  // namespace
}  // namespace tutti::meeting
