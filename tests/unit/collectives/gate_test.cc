#include "collectives/group/gate.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/collectives/member_world.h"

namespace tutti {
namespace {

using test::MemberWorld;
using Numbers = std::vector<std::uint64_t>;

TEST(Gate, StartsAnOperationAtOnceWhereNoThreadDrives) {
  MemberWorld rank(2);
  const Work work = rank.gate.launch(rank.make({}));
  EXPECT_EQ(rank.started, Numbers{0});
  EXPECT_FALSE(work.done());
}

TEST(Gate, HandsOverInOrderOfIssueWhereAnotherThreadDrives) {
  MemberWorld rank(2);
  {
    const DriverGuard guard(rank.driver);
    rank.gate.launch(rank.make({}));
    rank.gate.launch(rank.make({}));
    EXPECT_EQ(rank.started, Numbers{});
    EXPECT_FALSE(rank.gate.enter_in_passing());
  }
  rank.gate.settle();
  EXPECT_EQ(rank.started, (Numbers{0, 1}));
}

TEST(Gate, ACallInPassingHoldsTheBaton) {
  MemberWorld rank(2);
  ASSERT_TRUE(rank.gate.enter_in_passing());
  EXPECT_TRUE(rank.driver.driven_by_this_thread());
  EXPECT_FALSE(rank.gate.enter_in_passing());
  rank.gate.leave();
  EXPECT_FALSE(rank.driver.driven_by_this_thread());
}

TEST(Gate, EndsWhatIsLaunchedAfterAFailureWithItsCause) {
  MemberWorld rank(2);
  rank.failure.note(Status(Code::peer_lost, "rank 1 died", 1));
  EXPECT_FALSE(rank.gate.enter_in_passing());
  EXPECT_FALSE(rank.driver.driven_by_this_thread());
  const Work work = rank.gate.launch(rank.make({}));
  ASSERT_TRUE(work.done());
  EXPECT_EQ(work.status().code(), Code::peer_lost);
  EXPECT_EQ(work.status().peer(), 1);
  EXPECT_EQ(rank.started, Numbers{});
}

TEST(Gate, ActsOnAFailureOfTheMeantimeWhenItIsLeft) {
  MemberWorld rank(2);
  const Work work = rank.gate.launch(rank.make({}));
  ASSERT_TRUE(rank.gate.enter_in_passing());
  rank.failure.note(Status(Code::mismatch, "two calls"));
  EXPECT_FALSE(work.done());
  rank.gate.leave();
  EXPECT_EQ(work.status().code(), Code::mismatch);
  EXPECT_EQ(rank.spread, 1);
}

TEST(Gate, AnAbortEndsWhatIsUnderWay) {
  MemberWorld rank(2);
  const Work work = rank.gate.launch(rank.make({}));
  rank.gate.abort(Status(Code::aborted, "by the user"));
  EXPECT_EQ(work.status().code(), Code::aborted);
}

TEST(Gate, AnAbortWhileAnotherThreadDrivesIsLeftToThatThread) {
  MemberWorld rank(2);
  const Work work = rank.gate.launch(rank.make({}));
  const DriverGuard guard(rank.driver);
  rank.gate.abort(Status(Code::aborted, "by the user"));
  EXPECT_TRUE(rank.failure.happened());
  EXPECT_FALSE(work.done());
  rank.failure.act();
  EXPECT_EQ(work.status().code(), Code::aborted);
}

}  // namespace
}  // namespace tutti
