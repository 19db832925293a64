// Tests the device memory that `Communicator::allocate` returns, with the fakes of CUDA and NCCL.

#include <algorithm>
#include <barrier>
#include <bit>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tests/conformance/nccl_world.h"
#include "tests/support/mirrored_offload.h"
#include "tests/support/reference_offload.h"

namespace tutti::test {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::size_t far_too_many = std::size_t{1} << 50;

// Returns the elements at an address that the host can access.
std::span<float> elements_of(const Allocation& memory) {
  const std::span<float> there = memory.as<float>();
  void* const here = fake_cuda_host_address(std::bit_cast<cuda::Address>(there.data()), memory.bytes());
  return {static_cast<float*>(here), there.size()};
}

Status sum_in(Communicator& comm, const Allocation& memory, int device) {
  const std::span<float> there = memory.as<float>();
  const Buffer buffer(there.data(), there.size(), DataType::float32, Memory::cuda(device));
  return outcome(comm.all_reduce(buffer, ReduceOp::sum));
}

Status allocation_failure(Communicator& comm, std::size_t bytes, Memory memory) {
  try {
    comm.allocate(bytes, memory);
    return {};
  } catch (const Error& error) {
    return error.status();
  }
}

std::size_t device_bytes() { return fake_cuda_counts().device_bytes; }

// The parameter is the library that all ranks use.
class DeviceAllocation : public NcclWorld, public testing::WithParamInterface<std::string> {
 protected:
  static bool has_nccl() { return GetParam() == "nccl"; }
  static ClusterOptions world() {
    return has_nccl() ? options() : ClusterOptions{.offloads = staged_offloads(64)};
  }
  // Runs a world in which each rank's device has the number of the rank.
  void on_each(int size, const std::function<void(Communicator&)>& body, ClusterOptions with = world()) {
    std::barrier<> together(size);
    together_ = &together;
    Cluster ranks(size, std::move(with));
    ranks.run(body);
  }
  void meet() { together_->arrive_and_wait(); }
  // Runs `body` on rank 0, on the driving thread, inside a callback of a message from rank 1.
  void in_callback(Communicator& comm, const std::function<void()>& body) {
    int number = 7;
    if (comm.rank() == 0) {
      Work message = comm.recv({&number, 1, DataType::int32}, 1);
      std::promise<void> over;
      message.then([&](const Status&) {
        body();
        over.set_value();
      });
      meet();
      message.wait();
      over.get_future().wait();
    } else {
      meet();
      if (comm.rank() == 1) comm.send({&number, 1, DataType::int32}, 0).wait();
    }
  }

 private:
  std::barrier<>* together_ = nullptr;
};

TEST_P(DeviceAllocation, IsZeroedAndCollectivesUseIt) {
  for (const int size : {1, 2, 3, 4, 7, 8, 16}) {
    on_each(size, [&](Communicator& comm) {
      const std::size_t count = 100 + 10 * static_cast<std::size_t>(comm.rank());
      const Allocation memory = comm.allocate(count * sizeof(float), Memory::cuda(comm.rank()));
      EXPECT_EQ(memory.bytes(), count * sizeof(float));
      EXPECT_EQ(memory.registered(), has_nccl());
      EXPECT_THAT(elements_of(memory), Each(0.0f));
      std::ranges::fill(elements_of(memory), 1.0f);
      const Buffer buffer(memory.data(), 100, DataType::float32, Memory::cuda(comm.rank()));
      comm.all_reduce(buffer, ReduceOp::sum).wait();
      EXPECT_THAT(elements_of(memory).first(100), Each(static_cast<float>(size)));
      EXPECT_THAT(elements_of(memory).subspan(100), Each(1.0f));
      meet();
      EXPECT_EQ(fake_nccl().memories, has_nccl() ? size : 0);
      meet();
    });
    EXPECT_EQ(device_bytes(), 0u);
  }
}

TEST_P(DeviceAllocation, MayBeEmpty) {
  on_each(2, [](Communicator& comm) {
    const Allocation memory = comm.allocate(0, Memory::cuda(comm.rank()));
    EXPECT_EQ(memory.bytes(), 0u);
    EXPECT_NE(memory.data(), nullptr);
  });
}

TEST_P(DeviceAllocation, IsTheDriversIfNcclHasNone) {
  fake_nccl().lacks_memory = true;
  on_each(2, [](Communicator& comm) {
    const Allocation memory = comm.allocate(4000, Memory::cuda(comm.rank()));
    EXPECT_EQ(memory.registered(), has_nccl());
    std::ranges::fill(elements_of(memory), 1.0f);
    EXPECT_TRUE(sum_in(comm, memory, comm.rank()).ok());
    EXPECT_THAT(elements_of(memory), Each(2.0f));
    EXPECT_EQ(fake_nccl().memories, 0);
  });
}

TEST_P(DeviceAllocation, IsRegisteredWithEachCommunicatorUntilItIsFreed) {
  on_each(3, [&](Communicator& comm) {
    Communicator other = std::move(*comm.split(0));
    std::optional<Allocation> memory = comm.allocate(4000, Memory::cuda(comm.rank()));
    EXPECT_TRUE(sum_in(comm, *memory, comm.rank()).ok());
    EXPECT_TRUE(sum_in(other, *memory, comm.rank()).ok());
    meet();
    EXPECT_EQ(fake_nccl().registrations, has_nccl() ? 2 * 3 : 0);
    meet();
    memory.reset();
    meet();
    EXPECT_EQ(fake_nccl().registrations, 0);
    EXPECT_EQ(fake_nccl().memories, 0);
    meet();
  });
}

TEST_P(DeviceAllocation, MayHappenWhileAStreamIsBeingCaptured) {
  on_each(2, [](Communicator& comm) {
    const DeviceStream stream(comm.rank());
    stream.begin_capture();
    comm.allocate(100, Memory::cuda(comm.rank()));
    EXPECT_TRUE(stream.end_capture());
    comm.barrier().wait();  // the destructor of a stream synchronises, and a capture forbids this
  });
}

// --- how it fails ---

TEST_P(DeviceAllocation, IfOneRankHasTooLittleMemoryAllGetTheSameError) {
  on_each(4, [&](Communicator& comm) {
    const std::size_t bytes = comm.rank() == 2 ? far_too_many : 1000;
    const Status failed = allocation_failure(comm, bytes, Memory::cuda(comm.rank()));
    EXPECT_EQ(failed.code(), Code::resource_exhausted) << failed.to_string();
    EXPECT_EQ(failed.peer(), 2);
    EXPECT_EQ(failed.message(), comm.describe(2) + ": allocate: " + std::to_string(far_too_many) +
                                    " bytes in memory of CUDA device 2: cuMemAlloc: "
                                    "CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
    meet();
    EXPECT_EQ(device_bytes(), 0u);
    meet();
    EXPECT_EQ(comm.allocate(100, Memory::cuda(comm.rank())).bytes(), 100u);
  });
}

TEST_P(DeviceAllocation, IfItCannotBeClearedAllGetTheSameError) {
  on_each(2, [&](Communicator& comm) {
    if (comm.rank() == 0) fake_cuda_fail("cuMemsetD8Async", 1, 700);
    meet();
    const Status failed = allocation_failure(comm, 100, Memory::cuda(comm.rank()));
    EXPECT_EQ(failed.code(), Code::aborted) << failed.to_string();
    EXPECT_THAT(failed.message(), HasSubstr("cuMemsetD8Async: CUDA_ERROR_ILLEGAL_ADDRESS"));
    EXPECT_TRUE(comm.status().ok());
  });
}

TEST_P(DeviceAllocation, ADeviceThatDoesNotExistIsNamed) {
  on_each(3, [](Communicator& comm) {
    const Memory memory = Memory::cuda(comm.rank() == 1 ? 99 : comm.rank());
    const Status failed = allocation_failure(comm, 1000, memory);
    EXPECT_EQ(failed.code(), Code::invalid_argument) << failed.to_string();
    EXPECT_EQ(failed.peer(), 1);
    EXPECT_THAT(failed.message(), HasSubstr("there is no CUDA device 99"));
    EXPECT_TRUE(comm.status().ok());
  });
}

TEST_P(DeviceAllocation, HostAgainstDeviceIsAMismatchOnAllRanks) {
  for (const int different : {0, 2}) {
    on_each(3, [different](Communicator& comm) {
      const bool on_host = comm.rank() == different;
      const Status failed = allocation_failure(comm, 64, on_host ? Memory() : Memory::cuda(comm.rank()));
      EXPECT_EQ(failed.code(), Code::mismatch) << failed.to_string();
      const std::string host = "memory of the host";
      EXPECT_EQ(failed.message(),
                different == 0 ? comm.describe(1) + ": allocate: 64 bytes in memory of CUDA device 1, but " +
                                     comm.describe(0) + " allocates in " + host
                               : comm.describe(2) + ": allocate: 64 bytes in " + host + ", but " +
                                     comm.describe(0) + " allocates in memory of CUDA device 0");
      comm.barrier().wait();
    });
    EXPECT_EQ(device_bytes(), 0u);
  }
}

TEST_P(DeviceAllocation, ARankWithoutALibraryIsNamed) {
  ClusterOptions with = world();
  with.offloads = [made = with.offloads](int rank) {
    return rank == 1 ? std::vector<std::unique_ptr<Offload>>() : made(rank);
  };
  on_each(
      3,
      [](Communicator& comm) {
        const Status failed = allocation_failure(comm, 64, Memory::cuda(comm.rank()));
        EXPECT_EQ(failed.code(), Code::unsupported) << failed.to_string();
        EXPECT_EQ(failed.peer(), 1);
        EXPECT_THAT(failed.message(), HasSubstr("no library is loaded"));
        comm.barrier().wait();
      },
      with);
}

TEST_P(DeviceAllocation, ALibraryWithoutMemoryOfDevicesIsNamed) {
  const ClusterOptions reference = {.offloads = reference_offloads(ReferenceOptions())};
  on_each(
      2,
      [](Communicator& comm) {
        const Status failed = allocation_failure(comm, 64, Memory::cuda(0));
        EXPECT_EQ(failed.code(), Code::unsupported) << failed.to_string();
        EXPECT_THAT(failed.message(), HasSubstr("reference: it has no memory of devices"));
      },
      reference);
}

TEST_P(DeviceAllocation, IsRefusedInACallback) {
  on_each(2, [&](Communicator& comm) {
    in_callback(comm, [&] {
      const Status refused = allocation_failure(comm, 64, Memory::cuda(0));
      EXPECT_EQ(refused.code(), Code::invalid_argument) << refused.to_string();
      EXPECT_THAT(refused.message(), HasSubstr("inside a `then` callback"));
    });
    EXPECT_EQ(device_bytes(), 0u);
  });
}

TEST_P(DeviceAllocation, FailsOnACommunicatorThatHasFailed) {
  ClusterOptions with = world();
  with.control = true;
  on_each(
      2,
      [](Communicator& comm) {
        if (comm.rank() == 0) comm.abort("enough");
        const Status failed = allocation_failure(comm, 64, Memory::cuda(comm.rank()));
        EXPECT_EQ(failed.code(), Code::aborted) << failed.to_string();
        EXPECT_THAT(failed.message(), HasSubstr("enough"));
      },
      with);
}

// --- how long it lives ---

TEST_P(DeviceAllocation, OutlivesItsCommunicator) {
  on_each(2, [&](Communicator& comm) {
    const int rank = comm.rank();
    Allocation memory = comm.allocate(64, Memory::cuda(rank));
    EXPECT_TRUE(sum_in(comm, memory, rank).ok());
    comm = Communicator();
    EXPECT_THAT(elements_of(memory), Each(0.0f));
    meet();
    memory = Allocation();
    meet();
    EXPECT_EQ(device_bytes(), 0u);
    meet();
  });
}

TEST_P(DeviceAllocation, OutlivesRanksThatAreLost) {
  ClusterOptions with = world();
  with.control = true;
  on_each(
      3,
      [&](Communicator& comm) {
        const int rank = comm.rank();
        Allocation memory = comm.allocate(64, Memory::cuda(rank));
        EXPECT_TRUE(sum_in(comm, memory, rank).ok());
        meet();
        if (rank == 1) {
          memory = Allocation();
          comm = Communicator();
          return;
        }
        EXPECT_FALSE(sum_in(comm, memory, rank).ok());
        Communicator rest = comm.shrink().communicator;
        std::ranges::fill(elements_of(memory), 1.0f);
        EXPECT_TRUE(sum_in(rest, memory, rank).ok());
        EXPECT_THAT(elements_of(memory), Each(2.0f));
        EXPECT_EQ(rest.allocate(64, Memory::cuda(rank)).bytes(), 64u);
      },
      with);
}

// Freeing memory may wait for the device. The fake waits while a test holds copies back, but the
// driving thread must not wait.
TEST_P(DeviceAllocation, AnotherThreadFreesItIfACallbackLetsItGo) {
  on_each(2, [&](Communicator& comm) {
    fake_nccl().lacks_memory = true;
    Allocation memory = comm.allocate(64, Memory::cuda(comm.rank()));
    fake_cuda_hold_copies(true);
    in_callback(comm, [&] { memory = Allocation(); });
    comm.barrier().wait();
    EXPECT_EQ(device_bytes(), 2u * 64);
    meet();
    fake_cuda_hold_copies(false);
    for (int i = 0; i < 60'000 && device_bytes() > 64; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(device_bytes(), 64u);
    meet();
  });
}

INSTANTIATE_TEST_SUITE_P(, DeviceAllocation, testing::Values("nccl", "staged"),
                         [](const auto& each) { return each.param; });

// --- NCCL's registrations ---

class NcclRegions : public NcclWorld {};

TEST_F(NcclRegions, ARegionThatIsRemovedWhileNcclIsBusyIsDeregisteredAfterwards) {
  fake_nccl().launch_queries = 10'000;
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    const DeviceArray<float> data(comm.rank(), std::vector<float>(3, 1));
    Allocation memory = comm.allocate(64, Memory::cuda(comm.rank()));
    EXPECT_TRUE(sum_on_device(comm, data).ok());
    together.arrive_and_wait();
    EXPECT_EQ(fake_nccl().registrations, 2);
    together.arrive_and_wait();
    Work work = comm.all_reduce(data.buffer(), ReduceOp::sum);
    memory = Allocation();
    work.wait();
    together.arrive_and_wait();
    EXPECT_EQ(fake_nccl().registrations, 0);
    together.arrive_and_wait();
  });
}

// NCCL would believe that memory of another device belongs to the communicator's device. So tutti must not
// register such memory.
TEST_F(NcclRegions, ARegionIsRegisteredOnlyWithCommunicatorsOfItsDevice) {
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    const int devices[] = {comm.rank(), comm.rank() + 2};
    Communicator other = std::move(*comm.split(0));
    const DeviceArray<float> here(devices[0], {1}), there(devices[1], {1});
    const Buffer buffer = there.buffer();
    const Registration known =
        comm.register_memory(std::span(static_cast<std::byte*>(buffer.data), buffer.bytes()));
    const Allocation allocated[] = {comm.allocate(64, Memory::cuda(devices[0])),
                                    comm.allocate(64, Memory::cuda(devices[1]))};
    EXPECT_TRUE(sum_on_device(comm, here).ok());
    together.arrive_and_wait();
    EXPECT_EQ(fake_nccl().registrations, 2);
    together.arrive_and_wait();
    EXPECT_TRUE(sum_on_device(other, there).ok());
    together.arrive_and_wait();
    EXPECT_EQ(fake_nccl().registrations, 2 + 2 * 2);
    EXPECT_EQ(fake_nccl().foreign_registrations, 0);
    together.arrive_and_wait();
  });
}

// A transport that writes into registered memory has no use for memory of a device, and a card of verbs
// cannot even lock it. NCCL gets the region all the same.
TEST_F(NcclRegions, ARegionIsRegisteredWhateverTransportTheRanksUse) {
  for (const std::string& transport : writing_transports()) {
    ClusterOptions world = options();
    world.transport = transport;
    Cluster ranks(2, world);
    std::barrier together(2);
    const int before = fake_nccl().registrations;
    ranks.run([&](Communicator& comm) {
      const DeviceArray<float> data(comm.rank(), std::vector<float>(3, 1));
      const Buffer buffer = data.buffer();
      const Registration registration =
          comm.register_memory(std::span(static_cast<std::byte*>(buffer.data), buffer.bytes()));
      EXPECT_TRUE(sum_on_device(comm, data).ok()) << transport;
      together.arrive_and_wait();
      EXPECT_EQ(fake_nccl().registrations, before + 2) << transport;
      together.arrive_and_wait();
    });
  }
}

// The fake NCCL refuses a region that overlaps another region, so the old region must be deregistered first.
TEST_F(NcclRegions, ARegionTakesThePlaceOfOneThatIsRemovedWhileNcclIsBusy) {
  fake_nccl().launch_queries = 10'000;
  Cluster ranks(2, options());
  std::barrier together(2);
  ranks.run([&](Communicator& comm) {
    const DeviceArray<float> data(comm.rank(), std::vector<float>(3, 1));
    const Buffer buffer = data.buffer();
    const std::span region(static_cast<std::byte*>(buffer.data), buffer.bytes());
    std::optional<Registration> registration = comm.register_memory(region);
    EXPECT_TRUE(sum_on_device(comm, data).ok());
    Work work = comm.all_reduce(buffer, ReduceOp::sum);
    registration.reset();
    registration = comm.register_memory(region);
    work.wait();
    together.arrive_and_wait();
    EXPECT_EQ(fake_nccl().registrations, 2);
    together.arrive_and_wait();
  });
}

}  // namespace
}  // namespace tutti::test
