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
  const bool at_once_;  // if false, the session's groups are not in the stream yet when `launch` returns
};

class LaneTest : public testing::Test {
 protected:
  LaneTest() { fake_cuda_reset(2); }
  static std::shared_ptr<Lane> lane(int device, const std::string& host) {
    return Lane::of(**cuda::load(TUTTI_FAKE_CUDA), device, host).take();
  }

  const std::shared_ptr<Lane> lane_ = lane(0, "host");
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

TEST_F(LaneTest, AProcessHasOneLaneForEachDeviceAndHost) {
  EXPECT_EQ(lane(0, "host"), lane_);
  EXPECT_NE(lane(1, "host"), lane_);
  EXPECT_NE(lane(0, "another host"), lane_);
  std::weak_ptr<Lane> unused = lane(1, "host");
  EXPECT_TRUE(unused.expired());
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
