#include "collectives/group/failure.h"

#include <thread>

#include <gtest/gtest.h>

namespace tutti {
namespace {

constexpr int own_rank = 2;

class Witness : public Failure::Actor {
 public:
  void spread_failure(const Status& why, bool known) override {
    ++spread;
    cause = why;
    was_known = known;
  }
  void end_operations(const Status&) override {
    ++ended;
    failure.act();  // an operation may call `act` when it ends
  }
  bool others_may_know() const override { return listens; }

  bool listens = true;
  int spread = 0;
  int ended = 0;
  bool was_known = false;
  Status cause;
  Failure failure{own_rank, "rank 2", *this};
};

Status lost(int rank) { return Status(Code::peer_lost, "a connection ended", rank); }

TEST(Failure, KeepsTheFirstCause) {
  Witness witness;
  EXPECT_FALSE(witness.failure.happened());
  EXPECT_TRUE(witness.failure.status().ok());
  witness.failure.note(Status(Code::timeout, "first"));
  witness.failure.note(Status(Code::aborted, "second"));
  EXPECT_TRUE(witness.failure.happened());
  EXPECT_EQ(witness.failure.status().message(), "first");
}

TEST(Failure, IsSpreadOnceAndEndsOperationsAtEverySafePoint) {
  Witness witness;
  witness.failure.act();
  EXPECT_EQ(witness.ended, 0);
  witness.failure.note(Status(Code::timeout, "late"));
  EXPECT_FALSE(witness.failure.is_spread());
  witness.failure.act();
  witness.failure.act();
  EXPECT_EQ(witness.spread, 1);
  EXPECT_EQ(witness.ended, 2);
  EXPECT_FALSE(witness.was_known);
  EXPECT_EQ(witness.cause.message(), "late");
}

TEST(Failure, KnowsWhetherTheOthersHaveBeenTold) {
  Witness told, telling;
  told.failure.note_known(Status(Code::aborted, "by another rank"));
  told.failure.act();
  EXPECT_TRUE(told.was_known);
  telling.failure.note(Status(Code::aborted, "here"));
  telling.failure.note_known(Status(Code::aborted, "by another rank"));
  telling.failure.act();
  EXPECT_FALSE(telling.was_known);
}

TEST(Failure, GivesOthersAMomentToSayWhyAConnectionEnded) {
  Witness witness;
  witness.failure.suspect(lost(1));
  EXPECT_TRUE(witness.failure.suspects());
  EXPECT_FALSE(witness.failure.happened());
  EXPECT_FALSE(witness.failure.next_deadline().is_never());
  witness.failure.note(Status(Code::aborted, "the reason"));
  witness.failure.act();
  EXPECT_FALSE(witness.failure.suspects());
  EXPECT_EQ(witness.cause.message(), "the reason");
}

TEST(Failure, BlamesThePeerWhenNobodyKnowsMore) {
  Witness witness;
  witness.failure.suspect(lost(1));
  const Deadline patience = Deadline::after(std::chrono::seconds(10));
  while (!witness.failure.happened() && !patience.expired()) {
    witness.failure.confirm_suspicion();
    std::this_thread::yield();
  }
  EXPECT_EQ(witness.failure.status().code(), Code::peer_lost);
  EXPECT_FALSE(witness.failure.suspects());
}

TEST(Failure, DoesNotWaitForThoseThatCannotBeHeard) {
  Witness witness;
  witness.listens = false;
  witness.failure.suspect(lost(1));
  EXPECT_EQ(witness.failure.status().peer(), 1);
}

TEST(Failure, DoesNotWaitWhereItIsNoConnectionThatEnded) {
  Witness witness;
  witness.failure.suspect(Status(Code::timeout, "late"));
  EXPECT_EQ(witness.failure.status().code(), Code::timeout);
}

TEST(Failure, OfThisRankItselfMeansThatItWasGivenUp) {
  Witness witness;
  witness.failure.note(lost(own_rank));
  EXPECT_EQ(witness.failure.status().code(), Code::aborted);
  EXPECT_NE(witness.failure.status().message().find("rank 2 was given up"), std::string::npos);
}

}  // namespace
}  // namespace tutti
