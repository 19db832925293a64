// Tests the collectives on host memory that an offload library issues over a private communicator
// (`OffloadPeers::host_calls`).

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/on_each_transport.h"
#include "tests/support/reference_offload.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;

// A `HostCall` is one issued call and its outcome.
struct HostCall {
  std::atomic<bool> done{false};
  Status status;

  std::function<void(const Status&)> completion() {
    return [this](const Status& outcome) {
      status = outcome;
      done = true;
    };
  }
  Status wait(Communicator& comm) {
    while (!done) comm.progress();
    return status;
  }
};

template <class T>
Call sum_of(std::vector<T>& data) {
  return {.kind = CollectiveKind::all_reduce, .in = data, .out = Buffer(data)};
}

class HostCallsTest : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  int size() const { return std::get<1>(GetParam()); }
  // Lets the ranks open a library, which makes a private communicator on each rank. Then runs
  // `body`.
  void run(const std::function<void(Communicator&, std::unique_ptr<HostCalls>&)>& body) {
    std::vector<std::unique_ptr<HostCalls>> calls(static_cast<std::size_t>(size()));
    const auto opening = [&](OffloadPeers& peers) {
      auto made = peers.host_calls();
      if (!made.ok()) return made.status();
      calls[static_cast<std::size_t>(peers.rank())] = *std::move(made);
      return Status();
    };
    Cluster ranks(size(), {.transport = std::get<0>(GetParam()),
                           .offloads = reference_offloads(ReferenceOptions{.opening = opening})});
    ranks.run([&](Communicator& comm) {
      std::vector<float> data(1, 1);
      Buffer there(data);
      there.memory = Memory::cuda(0);
      comm.all_reduce(there, ReduceOp::sum).wait();
      std::unique_ptr<HostCalls>& mine = calls[static_cast<std::size_t>(comm.rank())];
      ASSERT_NE(mine, nullptr);
      body(comm, mine);
      mine.reset();
    });
  }
};

class HostCallsOfMany : public HostCallsTest {};

TEST_P(HostCallsTest, ManyMatchByOrderOfIssueBesideOrdinaryCalls) {
  run([&](Communicator& comm, std::unique_ptr<HostCalls>& host) {
    constexpr int calls = 40;
    std::vector<std::vector<std::int64_t>> data(calls);
    std::array<HostCall, calls> issued;
    std::vector<Work> ordinary;
    std::vector<std::vector<std::int64_t>> others(calls);
    for (std::size_t i = 0; i < calls; ++i) {
      data[i].assign(i * 531 % 4000, comm.rank() + static_cast<int>(i));
      others[i].assign(3, 1);
      host->issue(sum_of(data[i]), issued[i].completion());
      if (i % 3 == 0) ordinary.push_back(comm.all_reduce(others[i], ReduceOp::sum));
    }
    for (Work& work : ordinary) work.wait();
    for (std::size_t i = 0; i < calls; ++i) {
      EXPECT_TRUE(issued[i].wait(comm).ok());
      for (const std::int64_t value : data[i])
        ASSERT_EQ(value, size() * (size() - 1) / 2 + size() * static_cast<int>(i));
    }
  });
}

TEST_P(HostCallsTest, CallsAreIssuedWhileDriving) {
  run([&](Communicator& comm, std::unique_ptr<HostCalls>& host) {
    std::vector<std::int64_t> data(5, 1);
    HostCall second;
    HostCalls& calls = *host;
    calls.issue(sum_of(data), [&](const Status& first) {
      EXPECT_TRUE(first.ok());
      calls.issue(sum_of(data), second.completion());
    });
    EXPECT_TRUE(second.wait(comm).ok());
    EXPECT_EQ(data[4], size() * size());
  });
}

TEST_P(HostCallsTest, AnAbortEndsCallsOnAllMembersButNotTheCommunicator) {
  std::barrier together(size());
  run([&](Communicator& comm, std::unique_ptr<HostCalls>& host) {
    std::vector<std::int64_t> data(5, 1);
    HostCall hangs;
    if (comm.rank() == 0) {
      host->abort(Status(Code::resource_exhausted, "no room on the device", 0));
    }
    host->issue(sum_of(data), hangs.completion());
    const Status ended = hangs.wait(comm);
    EXPECT_EQ(ended.code(), Code::resource_exhausted) << ended.to_string();
    EXPECT_EQ(ended.message(), "no room on the device");
    EXPECT_EQ(ended.peer(), 0);
    EXPECT_TRUE(outcome(comm.barrier()).ok());
  });
}

TEST_P(HostCallsOfMany, CallsThatDifferAreAMismatchOnAllMembers) {
  run([&](Communicator& comm, std::unique_ptr<HostCalls>& host) {
    std::vector<std::int64_t> data(comm.rank() == 1 ? 4 : 5, 1);
    HostCall differs;
    host->issue(sum_of(data), differs.completion());
    EXPECT_EQ(differs.wait(comm).code(), Code::mismatch) << differs.status.to_string();
  });
}

TEST_P(HostCallsOfMany, ARankThatDoesNotMakeTheCommunicatorFailsTheOthers) {
  const auto opening = [](OffloadPeers& peers) {
    if (peers.rank() == 1) return Status(Code::unsupported, "there is no device");
    return peers.host_calls().status();
  };
  Cluster ranks(size(), {.transport = std::get<0>(GetParam()),
                         .offloads = reference_offloads(ReferenceOptions{.opening = opening})});
  ranks.run([](Communicator& comm) {
    std::vector<float> data(1, 1);
    Buffer there(data);
    there.memory = Memory::cuda(0);
    const Status failed = outcome(comm.all_reduce(there, ReduceOp::sum));
    EXPECT_EQ(failed.code(), Code::unsupported) << failed.to_string();
    EXPECT_THAT(failed.message(),
                HasSubstr(comm.describe(1) + ": reference cannot be opened: there is no device"));
  });
}

std::string name_of_world(const testing::TestParamInfo<std::tuple<std::string, int>>& parameter) {
  return std::get<0>(parameter.param) + "_" + std::to_string(std::get<1>(parameter.param));
}

INSTANTIATE_TEST_SUITE_P(All, HostCallsTest,
                         testing::Combine(testing::Values("inproc", "shared"),
                                          testing::Values(1, 2, 3, 4, 7, 8)),
                         name_of_world);
INSTANTIATE_TEST_SUITE_P(All, HostCallsOfMany,
                         testing::Combine(testing::Values("inproc", "shared"),
                                          testing::Values(2, 3, 4, 7, 8)),
                         name_of_world);

}  // namespace
}  // namespace tutti::test
