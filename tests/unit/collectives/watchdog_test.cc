#include "collectives/group/watchdog.h"

#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/collectives/member_world.h"

namespace tutti {
namespace {

using test::MemberWorld;
using testing::HasSubstr;

constexpr Fingerprint watched_barrier;

struct Guarded : MemberWorld {
  explicit Guarded(int size, int rank = 0, bool talks = true) : MemberWorld(size, rank, talks) {}
  // Begins an operation with a time limit of one minute. Its start time lies `age` in the past.
  Operation& begin_before(std::chrono::seconds age) {
    Operation& operation = begin(watched_barrier);
    operation.stamp(Deadline::Clock::now() - age);
    return operation;
  }
  // Calls the watchdog 64 times, since it reads the clock only once in many calls.
  void look() {
    for (int i = 0; i < 64; ++i) watchdog.look();
  }
  Watchdog watchdog{context, members, desk, failure, journal, live};
};

constexpr std::chrono::seconds long_ago{10};
constexpr std::chrono::seconds too_long_ago{100};

TEST(Watchdog, MakesALongWaitKnownOnce) {
  Guarded rank(3);
  rank.begin_before(std::chrono::seconds(0));
  rank.begin_before(long_ago);
  rank.look();
  rank.look();
  ASSERT_EQ(rank.letters.size(), 1u);
  EXPECT_EQ(rank.letters[0].to, -1);
  EXPECT_EQ(rank.letters[0].topic, topic_blocked);
  EXPECT_EQ(decode_call(rank.letters[0].body)->sequence, 1u);
  EXPECT_FALSE(rank.failure.happened());
}

TEST(Watchdog, TheLeaderAsksHowFarAllAreAndNamesThoseWhoAreLate) {
  Guarded rank(3);
  rank.begin_before(too_long_ago);
  rank.look();
  ASSERT_EQ(rank.letters.size(), 1u);
  EXPECT_EQ(rank.letters[0].topic, topic_where);
  rank.watchdog.on_here(1, {rank.context, 0, 1});
  rank.watchdog.on_here(2, {rank.context, 0, 0});
  rank.watchdog.conclude();
  const Status verdict = rank.failure.status();
  EXPECT_EQ(verdict.code(), Code::timeout);
  EXPECT_THAT(verdict.message(), HasSubstr("barrier() #0"));
  EXPECT_THAT(verdict.message(), HasSubstr("; late: " + rank.members.describe(2)));
  EXPECT_EQ(verdict.peer(), 2);
  EXPECT_THAT(verdict.message(), testing::Not(HasSubstr("late: " + rank.members.describe(1))));
  EXPECT_EQ(rank.spread, 1);
}

TEST(Watchdog, TheLeaderNamesThoseWhoDoNotAnswer) {
  Guarded rank(3);
  rank.begin_before(too_long_ago);
  rank.look();
  rank.watchdog.on_here(1, {rank.context, 0, 1});
  const Deadline patience = Deadline::after(std::chrono::seconds(30));
  while (!rank.failure.happened() && !patience.expired()) {
    rank.watchdog.conclude();
    std::this_thread::yield();
  }
  EXPECT_THAT(rank.failure.status().message(), HasSubstr("; not answering: " + rank.members.describe(2)));
}

TEST(Watchdog, OthersReportToTheLeaderAndFailByThemselvesIfItIsSilent) {
  Guarded rank(3, 1);
  Operation& operation = rank.begin_before(too_long_ago);
  rank.look();
  ASSERT_EQ(rank.letters.size(), 1u);
  EXPECT_EQ(rank.letters[0].to, 0);
  EXPECT_EQ(rank.letters[0].topic, topic_expired);
  EXPECT_THAT(decode_expired(rank.letters[0].body)->text, HasSubstr("was not over in time"));
  EXPECT_FALSE(rank.failure.happened());
  operation.deadline = Deadline::after(std::chrono::seconds(0));
  rank.look();
  EXPECT_EQ(rank.failure.status().code(), Code::timeout);
  EXPECT_THAT(rank.failure.status().message(), HasSubstr(rank.members.describe(0) + " does not answer"));
}

TEST(Watchdog, OnlyTheLeaderLeadsAnInquiryForOthers) {
  Guarded leader(3), other(3, 1);
  ExpiredNote note;
  note.context = leader.context;
  leader.watchdog.on_expired(1, note);
  other.watchdog.on_expired(2, note);
  ASSERT_EQ(leader.letters.size(), 1u);
  EXPECT_EQ(leader.letters[0].topic, topic_where);
  EXPECT_TRUE(other.letters.empty());
}

TEST(Watchdog, SaysHowFarThisRankIs) {
  Guarded rank(3, 1);
  rank.begin(watched_barrier);
  rank.watchdog.on_where(2, {rank.context, 4, watched_barrier});
  ASSERT_EQ(rank.letters.size(), 1u);
  EXPECT_EQ(rank.letters[0].to, 2);
  const auto answer = decode_here(rank.letters[0].body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->sequence, 4u);
  EXPECT_EQ(answer->next, 1u);
}

TEST(Watchdog, WithoutAControlPlaneATimeoutIsAFailureAtOnce) {
  Guarded rank(3, 0, false);
  rank.begin_before(too_long_ago);
  rank.look();
  EXPECT_EQ(rank.failure.status().code(), Code::timeout);
  EXPECT_TRUE(rank.live.empty());
}

TEST(Watchdog, WakesForTheFirstThingThatIsDue) {
  Guarded rank(3);
  EXPECT_TRUE(rank.watchdog.next_deadline().is_never());
  Operation& operation = rank.begin(watched_barrier);
  operation.announced = true;
  const auto now = Deadline::Clock::now();
  operation.stamp(now);
  EXPECT_EQ(rank.watchdog.next_deadline().when(), operation.deadline.when());
  operation.announced = false;
  EXPECT_LT(rank.watchdog.next_deadline().when(), operation.deadline.when());
}

}  // namespace
}  // namespace tutti
