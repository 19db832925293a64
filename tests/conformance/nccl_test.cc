// Tests collectives on device memory with the fake NCCL: their results, and which ranks and calls
// NCCL accepts.

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/nccl_world.h"
#include "tests/support/collective_case.h"
#include "tests/support/mirrored_offload.h"
#include "transport/nccl/factory.h"
#include "transport/nccl/offload.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;

class NcclOfSize : public NcclWorld, public testing::WithParamInterface<int> {};
class NcclOfMany : public NcclOfSize {};

// The calls are on host memory, and `MirroredOffload` copies their elements to the device. So tutti
// itself can carry out the calls that NCCL does not accept.
TEST_P(NcclOfSize, EveryCollective) {
  for (const int queries : {0, 2}) {
    fake_nccl().launch_queries = queries;
    initialize_cuda();  // otherwise NCCL would not add fp8
    ClusterOptions mirrored;
    mirrored.offloads = [](int rank) {
      std::vector<std::unique_ptr<Offload>> only;
      only.push_back(std::make_unique<MirroredOffload>(offload(), rank));
      return only;
    };
    Cluster ranks(GetParam(), mirrored);
    ranks.run([&](Communicator& comm) {
      for (const CollectiveCase& test : tested_matrix(GetParam())) ASSERT_EQ(run_case(comm, test), "");
    });
  }
  EXPECT_EQ(fake_nccl().initialized, 2 * GetParam());
  EXPECT_GT(fake_nccl().calls, 200 * GetParam());
}

TEST_P(NcclOfSize, WhatNcclLacksIsUnsupportedOnAllRanks) {
  Cluster ranks(GetParam(), options());
  ranks.run([&](Communicator& comm) {
    const DeviceArray<std::int32_t> numbers(comm.rank(), {1, 2, 3});
    const Buffer buffer = numbers.buffer();
    const auto refused = [&](const Work& work, const char* why) {
      const Status status = outcome(work);
      EXPECT_EQ(status.code(), Code::unsupported) << status.to_string();
      EXPECT_THAT(status.message(), HasSubstr(std::string("nccl: ") + why));
    };
    refused(comm.scan(buffer, ReduceOp::sum), "it has no scan");
    refused(comm.exscan(buffer, ReduceOp::sum), "it has no exscan");
    refused(comm.all_reduce(buffer, ReduceOp::bit_xor), "it has no bit_xor");
    refused(comm.all_reduce(buffer, last_nonzero()), "it cannot call a program's functions");
    refused(comm.all_reduce(buffer, ReduceOp::premultiplied_sum(0.5)),
            "it multiplies integers by integers only");
    EXPECT_TRUE(comm.status().ok());
  });
  EXPECT_EQ(fake_nccl().calls, 0);
}

TEST_P(NcclOfSize, DeviceAndHostOperationsTakeTurns) {
  const int pairs = GetParam() == 2 || (test_all() && GetParam() <= 4) ? 5'000 : 250;
  Cluster ranks(GetParam(), options());
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> there(comm.rank(), {0});
    std::vector<std::int64_t> here(1);
    for (int i = 0; i < pairs; ++i) {
      there.view()[0] = static_cast<float>(comm.rank() + i % 1000);
      here[0] = comm.rank() + i;
      Work on_device = comm.all_reduce(there.buffer(), ReduceOp::sum);
      Work on_host = comm.all_reduce(here, ReduceOp::max);
      on_host.wait();
      on_device.wait();
      ASSERT_EQ(here[0], comm.size() - 1 + i);
      const int sum = comm.size() * (comm.size() - 1) / 2 + comm.size() * (i % 1000);
      ASSERT_EQ(there.view()[0], static_cast<float>(sum));
    }
  });
}

TEST_P(NcclOfMany, ManyCallsInFlight) {
  fake_nccl().launch_queries = 1;
  Cluster ranks(GetParam(), options());
  ranks.run([](Communicator& comm) {
    Communicator other = std::move(*comm.split(0));
    std::vector<std::unique_ptr<DeviceArray<float>>> memory;
    std::vector<Work> works;
    for (int i = 0; i < 200; ++i) {
      const std::vector<float> ones(3, static_cast<float>(i));
      memory.push_back(std::make_unique<DeviceArray<float>>(comm.rank(), ones));
      works.push_back((i % 3 == 0 ? other : comm).all_reduce(memory.back()->buffer(), ReduceOp::sum));
    }
    for (int i = 0; i < 200; ++i) {
      const auto at = static_cast<std::size_t>(i);
      works[at].wait();
      EXPECT_EQ(memory[at]->view()[0], static_cast<float>(comm.size() * i));
    }
  });
}

TEST_P(NcclOfMany, NoThreadWaitsForTheDevice) {
  Cluster ranks(GetParam(), options());
  ranks.run([](Communicator& comm) {
    const DeviceStream stream(comm.rank());
    const DeviceArray<float> data(comm.rank(), std::vector<float>(1000, 1));
    for (int i = 0; i < 20; ++i) {
      Work work = comm.all_reduce(data.buffer(), ReduceOp::max, {.stream = stream.handle()});
      work.wait_on(stream.handle());
      work.wait();
    }
    EXPECT_EQ(fake_cuda_counts().host_synchronisations, 0);
    comm.barrier().wait();  // the destructors synchronise, so all ranks must have read the count
  });
}

// --- calls that differ ---

TEST_P(NcclOfMany, SumAgainstMaxIsAMismatchOnAllRanks) {
  Cluster ranks(GetParam(), options());
  std::barrier together(GetParam());
  ranks.run([&](Communicator& comm) {
    for (const bool first_call : {false, true}) {
      Communicator part = std::move(*comm.split(0));
      DeviceArray<float> memory(comm.rank(), std::vector<float>(5, 1));
      if (!first_call) {
        EXPECT_TRUE(sum_on_device(part, memory).ok());
      }
      together.arrive_and_wait();
      const ReduceOp& op = comm.rank() == 1 ? ReduceOp::max : ReduceOp::sum;
      const Status differs = outcome(part.all_reduce(memory.buffer(), op));
      EXPECT_EQ(differs.code(), Code::mismatch) << differs.to_string();
    }
  });
}

TEST_P(NcclOfMany, HostMemoryAgainstDeviceMemoryIsAMismatchOnAllRanks) {
  Cluster ranks(GetParam(), options());
  std::barrier together(GetParam());
  ranks.run([&](Communicator& comm) {
    for (const bool first_call : {false, true}) {
      Communicator part = std::move(*comm.split(0));
      DeviceArray<float> memory(comm.rank(), std::vector<float>(5, 1));
      std::vector<float> here(5, 1);
      if (!first_call) {
        EXPECT_TRUE(sum_on_device(part, memory).ok());
      }
      together.arrive_and_wait();
      const Buffer buffer = comm.rank() == 0 ? Buffer(here) : memory.buffer();
      const Status differs = outcome(part.all_reduce(buffer, ReduceOp::sum));
      EXPECT_EQ(differs.code(), Code::mismatch) << differs.to_string();
    }
  });
}

TEST_P(NcclOfMany, SplitAndGroupOpenSessionsOfTheirOwn) {
  Cluster ranks(GetParam(), options());
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> memory(comm.rank(), std::vector<float>(4, 1));
    Communicator half = std::move(*comm.split(comm.rank() % 2));
    EXPECT_TRUE(sum_on_device(half, memory).ok());
    EXPECT_EQ(memory.view()[0], static_cast<float>(half.size()));
    if (comm.rank() < 2) {
      Communicator pair = comm.group(std::vector<int>{1, 0});
      DeviceArray<float> again(comm.rank(), std::vector<float>(4, 1));
      EXPECT_TRUE(sum_on_device(pair, again).ok());
      EXPECT_EQ(again.view()[0], 2.0f);
    }
  });
  EXPECT_EQ(fake_nccl().initialized, GetParam() + 2);
}

INSTANTIATE_TEST_SUITE_P(, NcclOfSize, testing::Values(1, 2, 3, 4, 7, 8));
INSTANTIATE_TEST_SUITE_P(, NcclOfMany, testing::Values(2, 3, 4, 7, 8));

// --- which ranks NCCL accepts ---

class Nccl : public NcclWorld {};

TEST_F(Nccl, AMissingLibraryIsUnsupported) {
  const auto no_nccl = nccl::create({.cuda_library = TUTTI_FAKE_CUDA, .nccl_library = "/no/libnccl.so"});
  EXPECT_EQ(no_nccl.status().code(), Code::unsupported);
  EXPECT_THAT(no_nccl.status().message(), HasSubstr("/no/libnccl.so"));
  const auto no_cuda = nccl::create({.cuda_library = "/no/libcuda.so", .nccl_library = TUTTI_FAKE_NCCL});
  EXPECT_EQ(no_cuda.status().code(), Code::unsupported);
  EXPECT_THAT(no_cuda.status().message(), HasSubstr("/no/libcuda.so"));
}

TEST_F(Nccl, ALibraryThatIsTooOldIsUnsupported) {
  fake_nccl().version = 21304;
  const auto old = nccl::create({.cuda_library = TUTTI_FAKE_CUDA, .nccl_library = TUTTI_FAKE_NCCL});
  EXPECT_EQ(old.status().code(), Code::unsupported);
  EXPECT_THAT(old.status().message(), HasSubstr("is NCCL 2.13.4; tutti needs NCCL 2.14.0 or later"));
}

// Versions of NCCL before 2.19 have no functions for memory.
TEST_F(Nccl, TheOldestLibraryNeedsNoFunctionsForMemory) {
  ClusterOptions old;
  old.offloads = [](int) {
    nccl::Api api = nccl::load(TUTTI_FAKE_NCCL).take();
    api.version = nccl::oldest_version;
    api.CommRegister = nullptr;
    api.CommDeregister = nullptr;
    api.MemAlloc = nullptr;
    api.MemFree = nullptr;
    std::vector<std::unique_ptr<Offload>> only;
    only.push_back(std::make_unique<nccl::Offload>(**cuda::load(TUTTI_FAKE_CUDA), api));
    return only;
  };
  Cluster ranks(2, old);
  ranks.run([](Communicator& comm) {
    const DeviceArray<float> memory(comm.rank(), {1});
    const Buffer buffer = memory.buffer();
    const auto known = comm.register_memory(std::span(static_cast<std::byte*>(buffer.data), buffer.bytes()));
    const Allocation allocated = comm.allocate(buffer.bytes(), Memory::cuda(comm.rank()));
    EXPECT_FALSE(allocated.registered());
    EXPECT_TRUE(sum_on_device(comm, memory).ok());
    EXPECT_EQ(memory.view()[0], 2.0f);
  });
  EXPECT_EQ(fake_nccl().calls, 2);
}

TEST_F(Nccl, AVariableThatMakesNcclBlockIsRefused) {
  for (const char* const value : {"0", "1", "0x1", "2"}) {
    setenv("NCCL_COMM_BLOCKING", value, 1);
    const auto made = nccl::create({.cuda_library = TUTTI_FAKE_CUDA, .nccl_library = TUTTI_FAKE_NCCL});
    unsetenv("NCCL_COMM_BLOCKING");
    EXPECT_EQ(made.ok(), std::stoi(value, nullptr, 0) != 1) << value;
    if (made.ok()) continue;
    EXPECT_EQ(made.status().code(), Code::unsupported);
    EXPECT_THAT(made.status().message(), HasSubstr("NCCL_COMM_BLOCKING is 1"));
  }
}

TEST_F(Nccl, FindingTheLibrariesDoesNotInitializeCuda) {
  const auto made = nccl::create({.cuda_library = TUTTI_FAKE_CUDA, .nccl_library = TUTTI_FAKE_NCCL});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_FALSE(fake_cuda_is_initialized());
}

TEST_F(Nccl, RanksWithDifferentVersionsAreNamedBeforeNcclStarts) {
  ClusterOptions mixed;
  mixed.offloads = [](int rank) {
    fake_nccl().version = rank == 2 ? 22602 : 22705;
    std::vector<std::unique_ptr<Offload>> only;
    only.push_back(offload());
    return only;
  };
  Cluster ranks(3, mixed);
  ranks.run([](Communicator& comm) {
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    const Status refused = sum_on_device(comm, memory);
    EXPECT_EQ(refused.code(), Code::unsupported) << refused.to_string();
    EXPECT_THAT(refused.message(), HasSubstr("nccl: " + comm.describe(0) + " has version 2.27.5, " +
                                             comm.describe(2) + " has version 2.26.2"));
    EXPECT_TRUE(comm.status().ok());
  });
  EXPECT_EQ(fake_nccl().initialized, 0);
}

TEST_F(Nccl, Float8IsReducedSinceVersion224) {
  fake_nccl().version = 22304;
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    const DeviceArray<std::uint8_t> bytes(comm.rank(), {0x38, 0x38});
    Buffer buffer = bytes.buffer();
    buffer.type = DataType::float8_e4m3;
    const Status refused = outcome(comm.all_reduce(buffer, ReduceOp::sum));
    EXPECT_THAT(refused.message(), HasSubstr("version 2.23.4 cannot add elements of type float8_e4m3"));
    EXPECT_TRUE(outcome(comm.broadcast(buffer, 1)).ok());
  });
}

// Adds floating-point elements of eight bits. Returns the outcome.
Status sum_float8(Communicator& comm) {
  DeviceArray<std::uint8_t> bytes(comm.rank(), {0x38, 0x38});  // ones
  Buffer buffer = bytes.buffer();
  buffer.type = DataType::float8_e4m3;
  const Status status = outcome(comm.all_reduce(buffer, ReduceOp::sum));
  if (status.ok()) {
    EXPECT_EQ(bytes.view()[0], 0x40);
  }
  return status;
}

TEST_F(Nccl, Float8IsReducedOnNewDevicesOnly) {
  initialize_cuda();
  for (const int oldest : {90, 89}) {
    ClusterOptions mixed;
    mixed.offloads = [&](int rank) {
      fake_cuda_set_capability(rank == 1 ? oldest : 100);
      std::vector<std::unique_ptr<Offload>> only;
      only.push_back(offload());
      return only;
    };
    Cluster ranks(2, mixed);
    ranks.run([&](Communicator& comm) {
      const Status status = sum_float8(comm);
      EXPECT_EQ(status.ok(), oldest == 90) << status.to_string();
      if (status.ok()) return;
      EXPECT_EQ(status.code(), Code::unsupported) << status.to_string();
      EXPECT_THAT(status.message(), HasSubstr("nccl: " + comm.describe(1) +
                                              " adds no fp8: device 0 has compute capability 8.9"));
      EXPECT_TRUE(comm.status().ok());
    });
  }
}

TEST_F(Nccl, Float8IsLeftToStagedIfCudaWasInitializedLate) {
  ClusterOptions both;
  both.offloads = [](int) {
    std::vector<std::unique_ptr<Offload>> all = staged_offloads(4096)(0);
    all.insert(all.begin(), offload());
    return all;
  };
  Cluster ranks(2, both);
  ranks.run([](Communicator& comm) { EXPECT_TRUE(sum_float8(comm).ok()); });
  EXPECT_EQ(fake_nccl().calls, 0);
}

TEST_F(Nccl, RanksThatShareADeviceAreNamedBeforeNcclStarts) {
  Cluster ranks(3, options());
  ranks.run([](Communicator& comm) {
    const int device = comm.rank() == 2 ? 0 : comm.rank();
    DeviceArray<float> memory(device, std::vector<float>(3, 1));
    const Status refused = sum_on_device(comm, memory);
    EXPECT_EQ(refused.code(), Code::invalid_argument) << refused.to_string();
    EXPECT_THAT(refused.message(), HasSubstr(comm.describe(0) + " and " + comm.describe(2) +
                                             " use the same device, 0000:00:00.0; "
                                             "NCCL needs a device for each rank"));
    EXPECT_EQ(refused.peer(), 2);
  });
  EXPECT_EQ(fake_nccl().initialized, 0);
}

// The instances (MIG) of a device have different identities, but NCCL distinguishes devices only by
// their bus ids.
TEST_F(Nccl, RanksOnInstancesOfOneDeviceAreNamedBeforeNcclStarts) {
  fake_cuda_make_instances();
  Cluster ranks(2, options());
  ranks.run([](Communicator& comm) {
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    const Status refused = sum_on_device(comm, memory);
    EXPECT_EQ(refused.code(), Code::invalid_argument) << refused.to_string();
    EXPECT_THAT(refused.message(), HasSubstr(comm.describe(0) + " and " + comm.describe(1) +
                                             " use the same device, 0000:00:00.0; "
                                             "NCCL needs a device for each rank"));
  });
  EXPECT_EQ(fake_nccl().initialized, 0);
}

// NCCL believes that ranks with different host ids run on different hosts.
TEST_F(Nccl, RanksWithDifferentHostIdsMayShareADevice) {
  ClusterOptions apart;
  apart.offloads = [](int rank) {
    setenv("NCCL_HOSTID", ("rank " + std::to_string(rank)).c_str(), 1);
    std::vector<std::unique_ptr<Offload>> only;
    only.push_back(offload());
    return only;
  };
  Cluster ranks(3, apart);
  unsetenv("NCCL_HOSTID");
  ranks.run([](Communicator& comm) {
    DeviceArray<float> memory(0, std::vector<float>(3, 1));
    EXPECT_TRUE(sum_on_device(comm, memory).ok());
    EXPECT_EQ(memory.view()[0], 3.0f);
  });
}

TEST_F(Nccl, ACallOnAnotherDeviceIsInvalid) {
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    DeviceArray<float> memory(comm.rank(), std::vector<float>(3, 1));
    DeviceArray<float> elsewhere(comm.rank() + 2, std::vector<float>(3, 1));
    EXPECT_TRUE(sum_on_device(comm, memory).ok());
    together.arrive_and_wait();
    const Status refused = sum_on_device(comm, elsewhere);
    EXPECT_EQ(refused.code(), Code::invalid_argument) << refused.to_string();
    EXPECT_THAT(refused.message(),
                HasSubstr("those of the communicator's first call were in memory of CUDA"));
  });
}

}  // namespace
}  // namespace tutti::test
