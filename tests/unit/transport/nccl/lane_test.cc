// Tests the order in which the sessions of a device launch their groups.

#include "transport/nccl/lane.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/fake_cuda.h"

namespace tutti::nccl {
namespace {

// A `FakeSession` writes its name when it launches a group.
class FakeSession final : public Lane::User {
 public:
  FakeSession(char name, std::string& launches, bool at_once)
      : name_(name), launches_(launches), at_once_(at_once) {}
  bool launch() override {
    launches_ += name_;
    return at_once_;
  }

 private:
  const char name_;
  std::string& launches_;
  const bool at_once_;  // otherwise its groups are not in the stream yet when `launch` returns
};

class LaneTest : public testing::Test {
 protected:
  LaneTest() { fake_cuda_reset(1); }

  const std::shared_ptr<Lane> lane_ = Lane::open(**cuda::load(TUTTI_FAKE_CUDA), 0).take();
  std::string launches_;
  FakeSession slow_{'s', launches_, false};
  FakeSession fast_{'f', launches_, true};
};

TEST_F(LaneTest, GroupsAreLaunchedInTheOrderOfTheCalls) {
  for (FakeSession* const each : {&fast_, &slow_, &fast_, &fast_, &slow_}) lane_->queue(*each);
  EXPECT_EQ(launches_, "fs");
  EXPECT_TRUE(lane_->waits_for(slow_));
  lane_->launched(slow_);
  EXPECT_EQ(launches_, "fsffs");
  lane_->queue(fast_);
  EXPECT_EQ(launches_, "fsffs");
  lane_->launched(slow_);
  EXPECT_EQ(launches_, "fsffsf");
}

TEST_F(LaneTest, ASessionThatLeavesHoldsNobodyUp) {
  for (FakeSession* const each : {&slow_, &fast_, &slow_, &fast_}) lane_->queue(*each);
  EXPECT_EQ(launches_, "s");
  lane_->leave(slow_);
  EXPECT_EQ(launches_, "sff");
  EXPECT_FALSE(lane_->waits_for(slow_));
}

}  // namespace
}  // namespace tutti::nccl
