// Tests the agreement of survivors against ranks that send arbitrary notes. The test plays ranks 1 and 2.
#include "collectives/group/shrinking.h"

#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/collectives/member_world.h"

namespace tutti {
namespace {

using Kind = ShrinkNote::Kind;

constexpr std::uint32_t context = 7;

MeshOptions three_ranks() {
  MeshOptions options;
  options.peers.resize(3);
  for (int rank = 0; rank < 3; ++rank) {
    options.peers[static_cast<std::size_t>(rank)].rank = rank;
    options.peers[static_cast<std::size_t>(rank)].host = "test";
  }
  return options;
}

class Lonely final : public Failure::Actor {
 public:
  void spread_failure(const Status&, bool) override {}
  void end_operations(const Status&) override {}
  bool others_may_know() const override { return false; }
};

class ShrinkingTest : public ::testing::Test {
 protected:
  ShrinkingTest()
      : engine_(std::make_shared<Engine>(DriverOptions{.background = false})),
        world_(engine_, std::make_unique<Mesh>(engine_->driver, three_ranks()),
               Selector::create(CostModel{}, "").take(), std::chrono::seconds(60)),
        members_(*world_.mesh, world_.topology, {0, 1, 2}) {
    world_.desk.start(std::make_unique<test::PaperPlane>(letters_));
  }
  std::unique_ptr<Shrinking> begin(std::uint32_t attempt) {
    auto made = std::make_unique<Shrinking>(context, members_, failure_, world_,
                                            Shrinking::Options{.attempt = attempt});
    made->work();
    return made;
  }
  static ShrinkNote note(Kind kind, std::uint32_t attempt, std::uint32_t number) {
    ShrinkNote made;
    made.kind = kind;
    made.context = context;
    made.attempt = attempt;
    made.number = number;
    made.members.resize(3);
    made.spared.resize(3);
    return made;
  }

  std::vector<test::PaperPlane::Letter> letters_;
  const std::shared_ptr<Engine> engine_;
  World world_;
  const Members members_;
  Lonely actor_;
  Failure failure_{0, "rank 0", actor_};
};

TEST_F(ShrinkingTest, AMemberThatTakesTheHighestNumberLeavesNone) {
  constexpr std::uint32_t highest = user_context_bit - 1;
  const auto first = begin(1);
  for (const int member : {1, 2}) first->on_note(member, note(Kind::join, 1, member == 1 ? highest : 2));
  // The other two ranks do not answer the proposal, and this rank tries again.
  const auto second = begin(2);
  for (const int member : {1, 2}) second->on_note(member, note(Kind::join, 2, 2));
  ASSERT_EQ(second->done().load(), 1u);
  EXPECT_EQ(second->status().code(), Code::resource_exhausted) << second->status().to_string();
  for (const auto& letter : letters_) {
    EXPECT_TRUE(decode_shrink(letter.body)) << "a note that its receiver cannot read";
  }
}

// This rank accepts a proposal, but times out before it learns of the commit. The leader answers
// the second attempt with the decision of the first attempt.
TEST_F(ShrinkingTest, ADecisionOfAnEarlierAttemptIsAdopted) {
  const Members members(*world_.mesh, world_.topology, {1, 0, 2});  // world rank 1 leads
  Shrinking first(context, members, failure_, world_, {.attempt = 1});
  first.work();
  ShrinkNote proposal = note(Kind::propose, 1, 9);
  proposal.members.assign(3, true);
  first.on_note(0, proposal);
  EXPECT_EQ(decode_shrink(letters_.back().body)->kind, Kind::accept);
  Shrinking second(context, members, failure_, world_, {.attempt = 2, .numbers = first.numbers()});
  second.work();
  ShrinkNote decision = note(Kind::commit, 1, 9);
  decision.members.assign(3, true);
  second.on_note(0, decision);
  ASSERT_EQ(second.done().load(), 1u);
  EXPECT_TRUE(second.status().ok()) << second.status().to_string();
  EXPECT_EQ(second.decision().number, 9u);
}

TEST_F(ShrinkingTest, NotesAboutOtherNumbersOfMembersAreIgnored) {
  const auto shrinking = begin(1);
  for (const Kind kind : {Kind::join, Kind::propose, Kind::commit, Kind::refuse}) {
    for (const std::size_t size : {0u, 2u, 4u}) {
      ShrinkNote wrong = note(kind, 1, 9);
      wrong.members.assign(size, true);
      shrinking->on_note(1, wrong);
    }
  }
  ShrinkNote wrong = note(Kind::commit, 1, 9);
  wrong.members.assign(3, true);
  wrong.spared.clear();
  shrinking->on_note(1, wrong);
  shrinking->on_note(2, note(Kind::join, 1, 2));
  EXPECT_EQ(shrinking->done().load(), 0u) << shrinking->status().to_string();
  shrinking->on_note(1, note(Kind::join, 1, 2));
  ASSERT_FALSE(letters_.empty());
  const auto last = decode_shrink(letters_.back().body);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->kind, Kind::propose);
}

}  // namespace
}  // namespace tutti
