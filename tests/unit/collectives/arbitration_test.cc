#include "collectives/group/arbitration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/collectives/member_world.h"

namespace tutti {
namespace {

using test::MemberWorld;
using testing::HasSubstr;

constexpr Fingerprint barrier;
constexpr Fingerprint broadcast{.kind = CollectiveKind::broadcast, .count = 4};

struct Judge : MemberWorld {
  explicit Judge(int size, bool talks = true) : MemberWorld(size, 0, talks) {}
  void notice(int peer, const Fingerprint& theirs) {
    arbitration.on_mismatch(peer, 0, &theirs, Status(Code::mismatch, "two calls differ"));
  }
  CallNote note(const Fingerprint& call, std::uint64_t number = 0) const { return {context, number, call}; }
  Arbitration arbitration{context, members, desk, failure, journal, shared};
};

TEST(Arbitration, AsksAllMembersAndNamesTheOneThatDiffers) {
  Judge rank(3);
  rank.begin(barrier);
  rank.notice(2, broadcast);
  EXPECT_TRUE(rank.arbitration.is_open());
  EXPECT_FALSE(rank.failure.happened());
  ASSERT_EQ(rank.letters.size(), 1u);
  EXPECT_EQ(rank.letters[0].to, -1);
  EXPECT_EQ(rank.letters[0].topic, topic_differs);
  EXPECT_EQ(decode_call(rank.letters[0].body)->call, barrier);
  rank.arbitration.on_answer(1, rank.note(barrier));
  EXPECT_FALSE(rank.arbitration.is_open());
  const Status verdict = rank.failure.status();
  EXPECT_EQ(verdict.code(), Code::mismatch);
  EXPECT_EQ(verdict.peer(), 2);
  EXPECT_THAT(verdict.message(), HasSubstr("as operation 0, where"));
  EXPECT_THAT(verdict.message(), HasSubstr("as most did"));
}

TEST(Arbitration, TheOddOneMayBeThisRank) {
  Judge rank(3);
  rank.begin(barrier);
  rank.notice(2, broadcast);
  rank.arbitration.on_answer(1, rank.note(broadcast));
  EXPECT_EQ(rank.failure.status().peer(), 0);
}

TEST(Arbitration, AnswersAboutOtherOperationsDoNotCount) {
  Judge rank(3);
  rank.begin(barrier);
  rank.notice(2, broadcast);
  rank.arbitration.on_answer(1, rank.note(barrier, 5));
  EXPECT_TRUE(rank.arbitration.is_open());
}

TEST(Arbitration, OfTwoMembersNobodyIsBlamed) {
  Judge rank(2);
  rank.begin(barrier);
  rank.notice(1, broadcast);
  EXPECT_EQ(rank.failure.status().message(), "two calls differ");
  EXPECT_EQ(rank.failure.status().peer(), -1);
  EXPECT_TRUE(rank.letters.empty());
}

TEST(Arbitration, WithoutAControlPlaneNobodyIsBlamed) {
  Judge rank(3, false);
  rank.begin(barrier);
  rank.notice(2, broadcast);
  EXPECT_EQ(rank.failure.status().message(), "two calls differ");
}

TEST(Arbitration, WhereAllDifferNobodyIsBlamed) {
  Judge rank(3);
  rank.begin(barrier);
  rank.notice(2, broadcast);
  rank.arbitration.on_answer(1, rank.note({.kind = CollectiveKind::scan}));
  EXPECT_EQ(rank.failure.status().message(), "two calls differ");
  EXPECT_EQ(rank.failure.status().peer(), -1);
}

TEST(Arbitration, SettledNowItGoesByWhatIsKnown) {
  Judge rank(3);
  rank.begin(barrier);
  rank.arbitration.settle_now();
  EXPECT_FALSE(rank.failure.happened());
  rank.notice(2, broadcast);
  rank.arbitration.settle_now();
  EXPECT_EQ(rank.failure.status().message(), "two calls differ");
}

TEST(Arbitration, AMismatchOfLengthsIsAFailureAtOnce) {
  Judge rank(3);
  rank.arbitration.on_mismatch(2, 0, nullptr, Status(Code::mismatch, "too short"));
  EXPECT_FALSE(rank.arbitration.is_open());
  EXPECT_EQ(rank.failure.status().message(), "too short");
}

TEST(Arbitration, AnswersAQuestionAsSoonAsItHasCalled) {
  Judge rank(3);
  rank.arbitration.on_question(1, rank.note(broadcast));
  EXPECT_TRUE(rank.letters.empty());
  rank.begin(barrier);
  rank.arbitration.poll();
  ASSERT_EQ(rank.letters.size(), 1u);
  EXPECT_EQ(rank.letters[0].to, 1);
  EXPECT_EQ(rank.letters[0].topic, topic_called);
  EXPECT_EQ(decode_call(rank.letters[0].body)->call, barrier);
  rank.arbitration.poll();
  EXPECT_EQ(rank.letters.size(), 1u);
}

TEST(Arbitration, ABlockedMemberIsNoticedIfItsCallDiffers) {
  Judge rank(3);
  rank.begin(barrier);
  rank.arbitration.on_blocked(1, rank.note(barrier));
  rank.arbitration.on_blocked(1, rank.note(broadcast, 1));
  EXPECT_FALSE(rank.arbitration.is_open());
  rank.arbitration.on_blocked(1, rank.note(broadcast));
  EXPECT_TRUE(rank.arbitration.is_open());
  rank.arbitration.settle_now();
  EXPECT_THAT(rank.failure.status().message(), HasSubstr("called broadcast"));
}

}  // namespace
}  // namespace tutti
