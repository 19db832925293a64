#include "transport/driver/idle_spell.h"

#include <chrono>

#include <gtest/gtest.h>

namespace tutti {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using Time = IdleSpell::Time;

constexpr microseconds spin(50), yield(200);

// The tests tell a spell (an `IdleSpell`) the time. The spell itself reads the clock only in `end`, and after
// each yield while it spins. There it compares the clock with the time that the test told. If the clock is
// ahead of that time, the spell concludes that another thread ran. So a told time in the future never leads
// to this conclusion, and a told time in the past always does.
class IdleSpellTest : public ::testing::Test {
 protected:
  const Time future_ = Deadline::Clock::now() + hours(1);
  const Time past_ = Deadline::Clock::now() - hours(1);
  SpinPolicy spin_policy_{spin};
  SpinPolicy yield_policy_{yield, SpinPolicy::InVain::is_fine};
  bool crowded_ = false;
  IdleSpell spell_{spin_policy_, yield_policy_, crowded_};

  // Runs a whole spell in which no data arrives.
  void pass_in_vain() {
    spell_.begin(future_);
    EXPECT_TRUE(spell_.pass_time(future_ + spin));
    EXPECT_FALSE(spell_.pass_time(future_ + spin + yield));
    EXPECT_FALSE(spell_.has_begun());
  }
};

TEST_F(IdleSpellTest, SpinsAloneThenOffersTheProcessorThenIsOver) {
  EXPECT_FALSE(spell_.has_begun());
  spell_.begin(future_);
  EXPECT_TRUE(spell_.has_begun());
  EXPECT_TRUE(spell_.pass_time(future_));
  EXPECT_TRUE(spell_.is_spinning() && spell_.is_alone());
  EXPECT_TRUE(spell_.pass_time(future_ + microseconds(10)));
  EXPECT_TRUE(spell_.is_spinning());
  EXPECT_FALSE(spell_.is_alone());
  EXPECT_TRUE(spell_.pass_time(future_ + spin));
  EXPECT_FALSE(spell_.is_spinning());
  EXPECT_TRUE(spell_.pass_time(future_ + spin + yield - nanoseconds(1)));
  EXPECT_FALSE(spell_.pass_time(future_ + spin + yield));
  EXPECT_FALSE(spell_.has_begun());
}

TEST_F(IdleSpellTest, IsOverSoonWhereOthersWantTheProcessor) {
  for (int i = 0; i < 10; ++i) {
    spell_.begin(past_);
    // A spell that other threads cut short does not count as useless.
    EXPECT_TRUE(spell_.is_spinning());
    EXPECT_TRUE(spell_.pass_time(past_ + microseconds(10)));
    EXPECT_TRUE(crowded_);
    EXPECT_FALSE(spell_.pass_time(past_ + microseconds(20)));
    EXPECT_FALSE(crowded_);  // the next spell tries again
  }
}

TEST_F(IdleSpellTest, OffersTheProcessorAtOnceAfterSpinningInVain) {
  for (int i = 0; i < 3; ++i) pass_in_vain();
  spell_.begin(future_);
  EXPECT_FALSE(spell_.is_spinning());
  EXPECT_TRUE(spell_.pass_time(future_));
  EXPECT_FALSE(spell_.is_alone());
  EXPECT_FALSE(spell_.pass_time(future_ + yield));
}

TEST_F(IdleSpellTest, SpinsOnWhereSpinningFindsSomething) {
  for (int i = 0; i < 100; ++i) {
    spell_.begin(future_);
    EXPECT_TRUE(spell_.pass_time(future_));
    EXPECT_TRUE(spell_.is_spinning());
    spell_.end();
    EXPECT_FALSE(spell_.has_begun());
  }
}

TEST_F(IdleSpellTest, LearnsFromALostTimeSlice) {
  spell_.begin(past_);
  EXPECT_TRUE(spell_.pass_time(past_));
  spell_.end();  // reads the clock, which is an hour ahead
  spell_.begin(future_);
  EXPECT_FALSE(spell_.is_spinning());
}

// This is the policy when there are more ranks than cores.
TEST(IdleSpell, NeitherSpinsNorYieldsIfItMustNot) {
  SpinPolicy never(nanoseconds(0));
  bool crowded = false;
  IdleSpell spell(never, never, crowded);
  const Time now = Deadline::Clock::now();
  spell.begin(now);
  EXPECT_TRUE(spell.pass_time(now));
  EXPECT_FALSE(spell.is_spinning() || spell.is_alone());
  EXPECT_FALSE(spell.pass_time(now));
}

// Ending a spell that has not begun does not affect the policies.
TEST_F(IdleSpellTest, EndsOnce) {
  spell_.end();
  spell_.begin(past_);
  EXPECT_TRUE(spell_.pass_time(past_));
  spell_.end();
  spell_.end();
  int skipped = 0;
  while (spin_policy_.begin().count() == 0) ++skipped;
  EXPECT_EQ(skipped, 64);
}

}  // namespace
}  // namespace tutti
