// Tests that errors name the user's call, and not the collectives inside `split`, `allocate` and `init`.
// Errors also name the algorithms that a user has requested.

#include <array>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/calibration.h"
#include "tests/support/cluster.h"

namespace tutti::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

Status outcome_of(const std::function<void()>& call) {
  try {
    call();
    return Status();
  } catch (const Error& error) {
    return error.status();
  }
}

auto speaks_of_our_collectives() {
  return AnyOf(HasSubstr("all_gather"), HasSubstr("int64"), HasSubstr("uint64"), HasSubstr("broadcast"),
               HasSubstr("send("), HasSubstr("recv("), HasSubstr("uint8"));
}

class UserCalls : public testing::TestWithParam<std::string> {
 protected:
  using Call = std::function<void(Communicator&)>;

  // Runs two ranks: rank 0 calls `usual` and rank 1 calls `odd`. Returns both errors.
  std::array<std::string, 2> mismatch_of(const Call& usual, const Call& odd) {
    Cluster ranks(2, {.transport = GetParam()});
    std::array<std::string, 2> texts;
    ranks.run([&](Communicator& comm) {
      Status status = outcome_of([&] { comm.rank() == 1 ? odd(comm) : usual(comm); });
      if (status.ok()) status = outcome_of([&] { comm.barrier().wait(); });
      EXPECT_EQ(status.code(), Code::mismatch) << status.to_string();
      texts[static_cast<std::size_t>(comm.rank())] = status.message();
    });
    return texts;
  }

  // Runs two ranks, of which only rank `who` makes the call, so that the call times out. Returns
  // the error of the call.
  std::string timeout_of(int who, const Call& call, Composite part_of = Composite::none) {
    Cluster ranks(2,
                  {.transport = GetParam(), .timeout = std::chrono::milliseconds(300), .part_of = part_of});
    Status status;
    ranks.run([&](Communicator& comm) {
      if (comm.rank() == who) status = outcome_of([&] { call(comm); });
    });
    EXPECT_EQ(status.code(), Code::timeout) << status.to_string();
    return status.message();
  }
};

void reduce_four(Communicator& comm) {
  std::array<float, 4> data{};
  comm.all_reduce(data, ReduceOp::max).wait();
}

TEST_P(UserCalls, AMismatchWithASplitSaysSplit) {
  for (const std::string& text : mismatch_of([](auto& comm) { comm.split(0); }, reduce_four)) {
    EXPECT_THAT(text, HasSubstr("rank 0 (host test, pid 1000) called split()"));
    EXPECT_THAT(text, HasSubstr("rank 1 (host test, pid 1001) called all_reduce(count=4, float32, max)"));
    EXPECT_THAT(text, Not(speaks_of_our_collectives()));
  }
}

TEST_P(UserCalls, AMismatchWithAnAllocateSaysAllocate) {
  const auto split = [](Communicator& comm) { comm.split(0); };
  for (const std::string& text : mismatch_of([](auto& comm) { comm.allocate(100); }, split)) {
    EXPECT_THAT(text, HasSubstr("rank 0 (host test, pid 1000) called allocate()"));
    EXPECT_THAT(text, HasSubstr("rank 1 (host test, pid 1001) called split()"));
    EXPECT_THAT(text, Not(speaks_of_our_collectives()));
  }
}

TEST_P(UserCalls, AMismatchOfAlgorithmsSaysTheirNames) {
  const auto by = [](const char* algorithm) {
    return [algorithm](Communicator& comm) {
      std::array<float, 4> data{};
      comm.all_reduce(data, ReduceOp::sum, {.algorithm = algorithm}).wait();
    };
  };
  for (const std::string& text : mismatch_of(by("ring"), by("recursive_doubling"))) {
    EXPECT_THAT(text, HasSubstr("called all_reduce(count=4, float32, sum, algorithm=ring)"));
    EXPECT_THAT(text, HasSubstr("called all_reduce(count=4, float32, sum, algorithm=recursive_doubling)"));
  }
}

TEST_P(UserCalls, ATimeoutSaysWhatTheUserWaitsIn) {
  const std::string waiting = " was not over in time; still waiting for rank 1 (host test, pid 1001)";
  const std::string split = timeout_of(0, [](auto& comm) { comm.split(0); });
  EXPECT_THAT(split, HasSubstr(": split() #0 after "));
  EXPECT_THAT(split, HasSubstr(waiting));
  const std::string allocate = timeout_of(0, [](auto& comm) { comm.allocate(100); });
  EXPECT_THAT(allocate, HasSubstr(": allocate() #0 after "));
  EXPECT_THAT(allocate, HasSubstr(waiting));
  for (const std::string& text : {split, allocate}) EXPECT_THAT(text, Not(speaks_of_our_collectives()));
}

TEST_P(UserCalls, ATimedOutSendNamesTheRankThatDoesNotReceive) {
  const std::vector<float> data(1'000'000);
  const std::string text = timeout_of(0, [&](Communicator& comm) { comm.send(data, 1).wait(); });
  EXPECT_THAT(text, HasSubstr("still waiting for rank 1 (host test, pid 1001)"));
}

// The ranks measure costs and agree on them while they meet. The errors of all these calls name
// `init`.
TEST_P(UserCalls, WhatInitDoesReadsAsInit) {
  const Topology one_host(std::array{0, 0});
  for (const bool measuring : {false, true}) {
    const std::string text = timeout_of(
        1, [&](Communicator& comm) { agree_on_costs(comm, one_host, CostModel{}, measuring); },
        Composite::init);
    EXPECT_THAT(text, HasSubstr(measuring ? ": init() after " : ": init() #0 after "));
    EXPECT_THAT(text, Not(speaks_of_our_collectives()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, UserCalls, testing::ValuesIn(all_transports()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace tutti::test
