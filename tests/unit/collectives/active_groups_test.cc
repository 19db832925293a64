#include "collectives/group/active_groups.h"

#include <functional>
#include <memory>

#include <gtest/gtest.h>

namespace tutti {
namespace {

// A `Member` without work becomes inactive, and is no longer polled, long before this many polls.
constexpr int many = 2000;

class PollCounter final : public ActiveGroups::Member {
 public:
  using Member::Member;
  bool poll() override {
    ++polls;
    if (act) act();
    return false;
  }
  bool prepare_sleep() override {
    ++prepared;
    return false;
  }
  void cancel_sleep() override { --prepared; }
  bool expects_memory() const override { return true; }
  Deadline next_deadline() const override { return Deadline::after(std::chrono::seconds(1)); }

  int polls = 0;
  int prepared = 0;
  bool busy = false;
  std::function<void()> act;

 private:
  bool rest() override { return !busy; }
};

class ActiveGroupsTest : public ::testing::Test {
 protected:
  void poll(int times) {
    for (int i = 0; i < times; ++i) groups_.poll();
  }

  Driver driver_{{.background = false}};
  ActiveGroups groups_{driver_};
  PollCounter first_{groups_}, second_{groups_};
};

TEST_F(ActiveGroupsTest, AMemberThatHasNothingToDoIsLeftAlone) {
  groups_.add(first_);
  poll(many);
  const int polls = first_.polls;
  EXPECT_GT(polls, 0);
  EXPECT_LT(polls, many);
  poll(many);
  EXPECT_EQ(first_.polls, polls);
  EXPECT_FALSE(groups_.expects_memory());
  EXPECT_EQ(groups_.next_deadline().when(), Deadline::never().when());
  groups_.prepare_sleep();
  EXPECT_EQ(first_.prepared, 0);
  groups_.cancel_sleep();
}

TEST_F(ActiveGroupsTest, AMemberIsPolledAsLongAsItHasSomethingToDo) {
  first_.busy = true;
  groups_.add(first_);
  poll(many);
  EXPECT_EQ(first_.polls, many);
  EXPECT_TRUE(groups_.expects_memory());
  EXPECT_LT(groups_.next_deadline().when(), Deadline::never().when());
  groups_.prepare_sleep();
  EXPECT_EQ(first_.prepared, 1);
  groups_.cancel_sleep();
  EXPECT_EQ(first_.prepared, 0);
}

TEST_F(ActiveGroupsTest, AStirredMemberIsPolledAgain) {
  groups_.add(first_);
  groups_.add(second_);
  poll(many);
  const int polls = second_.polls;
  first_.stir();
  first_.stir();
  first_.polls = 0;
  poll(1);
  EXPECT_EQ(first_.polls, 1);
  EXPECT_EQ(second_.polls, polls);
}

TEST_F(ActiveGroupsTest, AnotherThreadCanStirAll) {
  groups_.add(first_);
  groups_.add(second_);
  poll(many);
  first_.polls = second_.polls = 0;
  groups_.stir_all();
  EXPECT_TRUE(groups_.prepare_sleep());
  poll(1);
  EXPECT_EQ(first_.polls + second_.polls, 2);
}

// A poll may end a communicator, or begin an operation on another communicator.
TEST_F(ActiveGroupsTest, APollMayChangeTheMembers) {
  groups_.add(second_);
  poll(many);
  second_.polls = 0;
  first_.act = [this] {
    groups_.remove(first_);
    second_.stir();
  };
  groups_.add(first_);
  poll(2);
  EXPECT_EQ(first_.polls, 1);
  EXPECT_EQ(second_.polls, 2);
  groups_.remove(second_);
  poll(1);
  EXPECT_EQ(second_.polls, 2);
}

}  // namespace
}  // namespace tutti
