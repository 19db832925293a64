// Tests transports that can write into a peer's memory (docs/seams/grants.md). Such a transport
// writes a message directly into memory of `Communicator::allocate` or
// `Communicator::register_memory`, without a copy.
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/cluster.h"

namespace tutti::test {
namespace {

constexpr std::size_t elements = 1 << 20;
constexpr std::size_t element_bytes = elements * sizeof(std::uint32_t);

// Broadcasts `data` from rank 0. Returns how many bytes this rank has received in place.
std::uint64_t broadcast(Communicator& comm, std::span<std::uint32_t> data) {
  const std::uint64_t before = comm.statistics().bytes_in_place;
  std::iota(data.begin(), data.end(), comm.rank() == 0 ? 7u : 0u);
  comm.broadcast(data, 0).wait();
  for (std::size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], 7u + i);
  return comm.statistics().bytes_in_place - before;
}

TEST(RegisterMemory, AllocatedMemoryIsReceivedInPlace) {
  for (const std::string& transport : writing_transports()) {
    Cluster ranks(3, {.transport = transport});
    ranks.run([](Communicator& comm) {
      const Allocation memory = comm.allocate(element_bytes);
      EXPECT_EQ(broadcast(comm, memory.as<std::uint32_t>()), comm.rank() == 0 ? 0 : element_bytes);
      const std::uint64_t before = comm.statistics().bytes_in_place;
      const std::span<std::uint32_t> data = memory.as<std::uint32_t>();
      comm.all_reduce(data, ReduceOp::sum).wait();
      for (std::size_t i = 0; i < elements; ++i) ASSERT_EQ(data[i], 3 * (7u + i));
      EXPECT_LT(comm.statistics().bytes_in_place - before, 2 * element_bytes) << "reductions are staged";
    });
  }
}

TEST(RegisterMemory, TheProgramsMemoryIsReceivedInPlaceWhileItIsRegistered) {
  for (const std::string& transport : writing_transports()) {
    Cluster ranks(2, {.transport = transport});
    ranks.run([](Communicator& comm) {
      std::vector<std::uint32_t> data(elements);
      const auto memory = std::as_writable_bytes(std::span(data));
      const std::size_t all = comm.rank() == 0 ? 0 : element_bytes;
      EXPECT_EQ(broadcast(comm, data), 0u);
      std::optional<Registration> registration = comm.register_memory(memory);
      EXPECT_EQ(broadcast(comm, data), all);
      registration.reset();
      EXPECT_EQ(broadcast(comm, data), 0u);
      Registration again = comm.register_memory(memory.first(element_bytes / 2));
      EXPECT_EQ(broadcast(comm, std::span(data).first(elements / 2)), all / 2);
      again = comm.register_memory(memory);
      EXPECT_EQ(broadcast(comm, data), all);
    });
  }
}

// Registered memory makes no difference to a transport without remote writes.
TEST(RegisterMemory, OtherTransportsHaveNoUseForIt) {
  for (const char* transport : {"tcp", "shm"}) {
    Cluster ranks(2, {.transport = transport});
    ranks.run([](Communicator& comm) {
      std::vector<std::uint32_t> data(elements);
      const Registration registration = comm.register_memory(std::as_writable_bytes(std::span(data)));
      EXPECT_EQ(broadcast(comm, data), 0u);
    });
  }
}

TEST(RegisterMemory, ARegistrationMayOutliveItsCommunicator) {
  std::vector<std::byte> memory(1000);
  Registration registration;
  {
    Cluster ranks(1);
    registration = ranks.communicator(0).register_memory(memory);
  }
  EXPECT_THROW(static_cast<void>(Communicator().register_memory(memory)), Error);
}

}  // namespace
}  // namespace tutti::test
