// Tests how calls on device memory end when no offload library supports such memory (docs/seams/memory.md).
// Most device buffers are at addresses that no process can access, so a test crashes if the library reads or
// writes them.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/on_each_transport.h"
#include "tests/support/cluster.h"
#include "tests/support/collective_case.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;

// Both addresses are below the lowest address that a process may map.
void* const device_input = reinterpret_cast<void*>(std::uintptr_t{0x1000});
void* const device_output = reinterpret_cast<void*>(std::uintptr_t{0x8000});

// Makes the call of a case on device memory. Each rank names a different device.
void perform_on_device(Communicator& comm, const CollectiveCase& test, const CaseCall& call) {
  const Memory memory = Memory::cuda(comm.rank());
  CaseCall there = call;
  there.in = ConstBuffer(device_input, call.in.count, call.in.type, memory);
  there.out = Buffer(device_output, call.out.count, call.out.type, memory);
  perform(comm, test, there);
}

// Performs a case and returns its status, but does not check the result.
Status outcome_of(Communicator& comm, const CollectiveCase& test, const Perform& by) {
  try {
    attempt_case(comm, test, {}, by);
    return Status();
  } catch (const Error& error) {
    return error.status();
  }
}

// Returns a case for each collective that has buffers, in and out of place.
std::vector<CollectiveCase> device_cases(int size) {
  std::vector<CollectiveCase> all;
  for (int k = 0; k < collective_kind_count; ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    if (kind == CollectiveKind::barrier || kind == CollectiveKind::send || kind == CollectiveKind::recv)
      continue;
    for (const bool in_place : {false, true}) {
      if (!in_place || has_in_place(kind))
        all.push_back({.kind = kind, .count = 3, .root = k % size, .in_place = in_place});
    }
  }
  return all;
}

class DeviceMemory : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  std::string transport() const { return std::get<0>(GetParam()); }
  int size() const { return std::get<1>(GetParam()); }
};

// These tests need two ranks or more.
class DeviceMemoryOfMany : public DeviceMemory {};

TEST_P(DeviceMemory, EveryCollectiveIsRefusedOnAllRanksAndTheNextOneWorks) {
  Cluster ranks(size(), {.transport = transport()});
  ranks.run([&](Communicator& comm) {
    for (const CollectiveCase& test : device_cases(size())) {
      const Status refused = outcome_of(comm, test, perform_on_device);
      EXPECT_EQ(refused.code(), Code::unsupported) << test.describe() << ": " << refused.to_string();
      EXPECT_THAT(refused.message(), HasSubstr(", on a device) #"));
      ASSERT_EQ(run_case(comm, test), "");
    }
    EXPECT_TRUE(comm.status().ok());
  });
}

TEST_P(DeviceMemoryOfMany, HostMemoryOnOneRankIsAMismatchOnAll) {
  Cluster ranks(size(), {.transport = transport()});
  ranks.run([&](Communicator& comm) {
    int odd = 0;
    for (const CollectiveCase& test : device_cases(size())) {
      std::optional<Communicator> part = comm.split(0);
      odd = (odd + 1) % size();
      Status differs = outcome_of(*part, test, comm.rank() == odd ? Perform(perform) : perform_on_device);
      // A rank whose call has succeeded learns of the mismatch in the barrier.
      if (differs.ok()) differs = outcome(part->barrier());
      EXPECT_EQ(differs.code(), Code::mismatch) << test.describe() << ": " << differs.to_string();
      EXPECT_THAT(differs.message(), HasSubstr(", on a device)"));
    }
  });
}

TEST_P(DeviceMemory, ACallThatDiffersInItsMemoryOnlyIsNoRepetition) {
  Cluster ranks(size(), {.transport = transport()});
  ranks.run([&](Communicator& comm) {
    std::array<float, 2> data{};
    const Buffer there(data.data(), data.size(), DataType::float32, Memory::cuda(0));
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 3; ++i) {
        data.fill(1);
        comm.all_reduce(data, ReduceOp::sum).wait();
        EXPECT_EQ(data[1], static_cast<float>(size()));
      }
      EXPECT_EQ(outcome(comm.all_reduce(there, ReduceOp::sum)).code(), Code::unsupported);
    }
  });
}

TEST_P(DeviceMemory, CallsAreRefusedInTheOrderOfIssue) {
  Cluster ranks(size(), {.transport = transport()});
  ranks.run([&](Communicator& comm) {
    constexpr std::size_t rounds = 20;
    std::vector<std::vector<float>> data(rounds, std::vector<float>(300, 1));
    std::vector<Work> done, refused;
    for (std::vector<float>& each : data) {
      done.push_back(comm.all_reduce(each, ReduceOp::sum));
      refused.push_back(comm.broadcast({device_output, 7, DataType::int64, Memory::cuda(1)}, size() - 1));
    }
    for (std::size_t i = 0; i < rounds; ++i) {
      EXPECT_EQ(outcome(refused[i]).code(), Code::unsupported);
      EXPECT_TRUE(outcome(done[i]).ok());
      EXPECT_EQ(data[i].back(), static_cast<float>(size()));
    }
  });
}

TEST_P(DeviceMemory, AMessageIsRefusedAtOnceAndCanBeSentFromHostMemory) {
  Cluster ranks(size(), {.transport = transport()});
  ranks.run([&](Communicator& comm) {
    const int next = (comm.rank() + 1) % size();
    const Buffer there(device_output, 1, DataType::int32, Memory::cuda(0));
    std::array<std::int32_t, 1> given = {comm.rank()}, taken = {-1};
    const std::array<Transfer, 2> both = {Transfer{Transfer::Direction::send, given, next, 5},
                                          Transfer{Transfer::Direction::recv, there, any_rank, 5}};
    for (const Work& refused : {comm.send(there, next, 5), comm.recv(there), comm.batch(both)}) {
      EXPECT_TRUE(refused.done());
      EXPECT_EQ(refused.status().code(), Code::unsupported) << refused.status().to_string();
    }
    Work received = comm.recv(taken, any_rank, 5);
    comm.send(given, next, 5).wait();
    received.wait();
    EXPECT_EQ(taken[0], (comm.rank() + size() - 1) % size());
  });
}

TEST_P(DeviceMemory, StreamsAndRegionsAreRefusedAtOnceAndAreNoOperations) {
  Cluster ranks(size(), {.transport = transport()});
  ranks.run([&](Communicator& comm) {
    int anything = 0;
    std::array<float, 2> data = {1, 1};
    for (const CallOptions& options : {CallOptions{.stream = &anything}, CallOptions{.region = &anything}}) {
      comm.all_reduce(data, ReduceOp::max).wait();
      for (const Work& refused :
           {comm.all_reduce(data, ReduceOp::max, options), comm.barrier(options),
            comm.send(data, comm.rank(), 3, options), comm.recv(data, any_rank, 3, options)}) {
        EXPECT_TRUE(refused.done());
        EXPECT_EQ(refused.status().code(), Code::unsupported) << refused.status().to_string();
      }
    }
    comm.barrier().wait();
  });
}

TEST_P(DeviceMemoryOfMany, ARankThatNeverMakesTheCallMakesItTimeOut) {
  Cluster ranks(size(), {.transport = transport(), .timeout = std::chrono::milliseconds(300)});
  ranks.run([&](Communicator& comm) {
    if (comm.rank() == 1) return;
    const Work late = comm.broadcast({device_output, 7, DataType::int64, Memory::cuda(1)}, 0);
    const Status status = outcome(late);
    EXPECT_EQ(status.code(), Code::timeout) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr("on a device) #0 after "));
  });
}

std::string name_of_world(const testing::TestParamInfo<std::tuple<std::string, int>>& parameter) {
  return std::get<0>(parameter.param) + "_" + std::to_string(std::get<1>(parameter.param));
}

INSTANTIATE_TEST_SUITE_P(All, DeviceMemory,
                         testing::Combine(testing::ValuesIn(all_transports()), testing::Values(1, 2, 3, 8)),
                         name_of_world);
INSTANTIATE_TEST_SUITE_P(All, DeviceMemoryOfMany,
                         testing::Combine(testing::ValuesIn(all_transports()), testing::Values(2, 3, 8)),
                         name_of_world);

}  // namespace
}  // namespace tutti::test
