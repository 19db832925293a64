// Tests operations of the C interface: messages, work handles, abort, shrink, shared memory.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <tutti/c.h>

#include "tests/conformance/c_world.h"
#include "tests/support/fake_cuda.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(COperations, MessagesFromAnybodyWithAnyTag) {
  c_world(3, [](tutti_comm* comm) {
    const int rank = tutti_comm_rank(comm);
    if (rank != 0) {
      const std::int32_t mine[] = {rank, rank};
      EXPECT_EQ(
          tutti_send(comm, mine, 2, TUTTI_INT32, 0, 40u + static_cast<unsigned>(rank), nullptr, nullptr),
          TUTTI_OK);
      return;
    }
    int sum = 0;
    for (int i = 0; i < 2; ++i) {
      std::int32_t got[3] = {};
      tutti_work* work = nullptr;
      ASSERT_EQ(tutti_recv(comm, got, 3, TUTTI_INT32, TUTTI_ANY_RANK, TUTTI_ANY_TAG, nullptr, &work),
                TUTTI_OK);
      ASSERT_EQ(tutti_work_wait(work), TUTTI_OK) << tutti_error_message();
      tutti_received received = TUTTI_RECEIVED_INIT;
      EXPECT_EQ(tutti_work_received(work, &received), TUTTI_OK);
      EXPECT_EQ(received.source, got[0]);
      EXPECT_EQ(received.tag, 40u + static_cast<unsigned>(got[1]));
      EXPECT_EQ(received.bytes, 8u);
      tutti_work_free(work);
      sum += got[0];
    }
    EXPECT_EQ(sum, 3);
  });
}

TEST(COperations, ABatchIsOverWhenItsLastTransferIs) {
  c_world(3, [](tutti_comm* comm) {
    const int rank = tutti_comm_rank(comm);
    const int right = (rank + 1) % 3;
    const int left = (rank + 2) % 3;
    double mine = rank;
    double got = -1;
    const tutti_transfer ring[] = {{TUTTI_RECV, TUTTI_FLOAT64, &got, 1, 5, left},
                                   {TUTTI_SEND, TUTTI_FLOAT64, &mine, 1, 5, right}};
    EXPECT_EQ(tutti_batch(comm, ring, 2, nullptr, nullptr), TUTTI_OK);
    EXPECT_EQ(got, left);
    tutti_transfer neither = ring[0];
    neither.direction = 7;
    EXPECT_EQ(tutti_batch(comm, &neither, 1, nullptr, nullptr), TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tutti_batch(comm, nullptr, 0, nullptr, nullptr), TUTTI_OK);
  });
}

struct Told {
  std::atomic<int> calls = 0;
  std::atomic<int> code = -1;
  std::string message;
};

void tell(void* state, int code, const char* message, int) {
  auto* told = static_cast<Told*>(state);
  told->message = message;
  told->code = code;
  ++told->calls;
}

TEST(COperations, WorkIsWaitedForAskedAndChained) {
  c_world(2, [](tutti_comm* comm) {
    const int rank = tutti_comm_rank(comm);
    char byte = 0;
    tutti_work* work = nullptr;
    Told told;
    if (rank == 0) {
      ASSERT_EQ(tutti_recv(comm, &byte, 1, TUTTI_UINT8, 1, 0, nullptr, &work), TUTTI_OK);
      int done = -1;
      EXPECT_EQ(tutti_work_wait_for(work, 1'000'000, &done), TUTTI_OK);
      EXPECT_EQ(done, 0);
      EXPECT_EQ(tutti_work_test(work), 0);
      EXPECT_EQ(tutti_work_status(work), TUTTI_OK);
      EXPECT_EQ(tutti_work_then(work, tell, &told), TUTTI_OK);
      EXPECT_EQ(tutti_work_wait_on(work, &done), TUTTI_ERROR_UNSUPPORTED);
      EXPECT_THAT(tutti_error_message(), HasSubstr("wait_on: no library carries out the call"));
    }
    EXPECT_EQ(tutti_barrier(comm, nullptr, nullptr), TUTTI_OK);
    if (rank == 1) {
      EXPECT_EQ(tutti_send(comm, &byte, 1, TUTTI_UINT8, 0, 0, nullptr, nullptr), TUTTI_OK);
      return;
    }
    tutti_work* copy = tutti_work_copy(work);
    tutti_work_free(work);
    int done = 0;
    EXPECT_EQ(tutti_work_wait_for(copy, 60'000'000'000, &done), TUTTI_OK);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(tutti_work_test(copy), 1);
    EXPECT_EQ(tutti_work_wait_on(copy, &done), TUTTI_OK);
    // The work has ended, so this call of `then` calls `tell` before it returns. Another thread may
    // still call `tell` for the earlier `then`.
    EXPECT_EQ(tutti_work_then(copy, tell, &told), TUTTI_OK);
    while (told.calls != 2) std::this_thread::yield();
    EXPECT_EQ(told.code, TUTTI_OK);
    EXPECT_EQ(told.message, "");
    tutti_work_free(copy);
  });
}

TEST(COperations, AbortEndsWhatIsPendingEverywhere) {
  c_world(2, [](tutti_comm* comm) {
    if (tutti_comm_rank(comm) == 1) {
      EXPECT_EQ(tutti_comm_abort(comm, "enough"), TUTTI_OK);
      return;
    }
    float value = 0;
    tutti_work* work = nullptr;
    Told told;
    ASSERT_EQ(tutti_all_reduce(comm, TUTTI_IN_PLACE, &value, 1, TUTTI_FLOAT32, TUTTI_SUM, nullptr, &work),
              TUTTI_OK);
    EXPECT_EQ(tutti_work_then(work, tell, &told), TUTTI_OK);
    EXPECT_EQ(tutti_work_wait(work), TUTTI_ERROR_ABORTED);
    EXPECT_THAT(tutti_error_message(), StartsWith("aborted: "));
    EXPECT_THAT(tutti_error_message(), HasSubstr("enough"));
    EXPECT_EQ(tutti_error_peer(), 1);
    EXPECT_EQ(tutti_work_status(work), TUTTI_ERROR_ABORTED);
    EXPECT_EQ(tutti_comm_status(comm), TUTTI_ERROR_ABORTED);
    while (told.calls == 0) std::this_thread::yield();
    EXPECT_EQ(told.code, TUTTI_ERROR_ABORTED);
    EXPECT_THAT(told.message, HasSubstr("enough"));
    tutti_work_free(work);
  });
}

TEST(COperations, ShrinksToThoseThatAreLeft) {
  c_world(3, [](tutti_comm* comm) {
    tutti_comm* old = nullptr;
    ASSERT_EQ(tutti_comm_split(comm, 0, 0, &old), TUTTI_OK) << tutti_error_message();
    EXPECT_EQ(tutti_barrier(old, nullptr, nullptr), TUTTI_OK);
    EXPECT_EQ(tutti_barrier(comm, nullptr, nullptr),
              TUTTI_OK);  // shrinking ends `old`, so all ranks must have left its barrier
    tutti_comm* survivors = nullptr;
    std::uint64_t completed = 0;
    ASSERT_EQ(tutti_comm_shrink(old, 0, &survivors, &completed), TUTTI_OK) << tutti_error_message();
    EXPECT_EQ(tutti_comm_size(survivors), 3);
    EXPECT_EQ(completed, 1u);
    EXPECT_EQ(tutti_barrier(survivors, nullptr, nullptr), TUTTI_OK);
    EXPECT_EQ(tutti_barrier(old, nullptr, nullptr), TUTTI_ERROR_ABORTED);
    tutti_comm_free(survivors);
    tutti_comm_free(old);
  });
}

TEST(COperations, AllocatesSharedMemory) {
  c_world(2, [](tutti_comm* comm) {
    tutti_allocation* allocation = nullptr;
    ASSERT_EQ(tutti_allocate(comm, 1 << 20, &allocation), TUTTI_OK) << tutti_error_message();
    ASSERT_EQ(tutti_allocation_size(allocation), 1u << 20);
    auto* data = static_cast<float*>(tutti_allocation_data(allocation));
    const size_t count = (1 << 20) / sizeof(float);
    for (size_t i = 0; i < count; ++i) data[i] = 1;
    EXPECT_EQ(tutti_all_reduce(comm, TUTTI_IN_PLACE, data, count, TUTTI_FLOAT32, TUTTI_SUM, nullptr, nullptr),
              TUTTI_OK);
    EXPECT_EQ(data[count - 1], 2);
    tutti_statistics statistics = TUTTI_STATISTICS_INIT;
    EXPECT_EQ(tutti_comm_statistics(comm, &statistics), TUTTI_OK);
    EXPECT_EQ(statistics.registered_operations > 0, tutti_allocation_registered(allocation) == 1);
    tutti_allocation_free(allocation);
  });
}

TEST(COperations, AllocatesMemoryOfADevice) {
  fake_cuda_reset(2);
  setenv("TUTTI_CUDA_LIBRARY", TUTTI_FAKE_CUDA, 1);
  c_world(2, [](tutti_comm* comm) {
    constexpr size_t count = 1000;
    tutti_allocation_options there = TUTTI_ALLOCATION_OPTIONS_INIT;
    there.memory = TUTTI_CUDA;
    there.device = tutti_comm_rank(comm);
    tutti_allocation* allocation = nullptr;
    ASSERT_EQ(tutti_allocate_with(comm, count * sizeof(float), &there, &allocation), TUTTI_OK)
        << tutti_error_message();
    EXPECT_EQ(tutti_allocation_size(allocation), count * sizeof(float));
    EXPECT_EQ(tutti_allocation_registered(allocation), 0) << "these calls are staged";
    void* const data = tutti_allocation_data(allocation);
    auto* const elements = static_cast<float*>(
        fake_cuda_host_address(reinterpret_cast<cuda::Address>(data), count * sizeof(float)));
    ASSERT_NE(elements, nullptr);
    EXPECT_EQ(elements[count - 1], 0);
    elements[count - 1] = 1;
    tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
    options.memory = there.memory;
    options.device = there.device;
    EXPECT_EQ(
        tutti_all_reduce(comm, TUTTI_IN_PLACE, data, count, TUTTI_FLOAT32, TUTTI_SUM, &options, nullptr),
        TUTTI_OK)
        << tutti_error_message();
    EXPECT_EQ(elements[count - 1], 2);
    tutti_allocation_free(allocation);
    there.device = 7 * tutti_comm_rank(comm);
    EXPECT_EQ(tutti_allocate_with(comm, 8, &there, &allocation), TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(tutti_error_message(), HasSubstr("there is no CUDA device 7"));
    EXPECT_EQ(allocation, nullptr);
  });
  unsetenv("TUTTI_CUDA_LIBRARY");
  EXPECT_EQ(fake_cuda_counts().device_bytes, 0u);
}

TEST(COperations, AllocatesMemoryOfTheHostWithoutOptions) {
  c_world(2, [](tutti_comm* comm) {
    tutti_allocation_options shorter = TUTTI_ALLOCATION_OPTIONS_INIT;
    shorter.struct_size = sizeof shorter.struct_size;
    shorter.memory = TUTTI_CUDA;
    for (const tutti_allocation_options* options : {&shorter, static_cast<decltype(&shorter)>(nullptr)}) {
      tutti_allocation* allocation = nullptr;
      ASSERT_EQ(tutti_allocate_with(comm, 8, options, &allocation), TUTTI_OK) << tutti_error_message();
      EXPECT_EQ(*static_cast<char*>(tutti_allocation_data(allocation)), 0);
      tutti_allocation_free(allocation);
    }
    shorter = TUTTI_ALLOCATION_OPTIONS_INIT;
    shorter.memory = 9;
    tutti_allocation* none = nullptr;
    EXPECT_EQ(tutti_allocate_with(comm, 8, &shorter, &none), TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(tutti_error_message(), HasSubstr("9 is not a kind of memory"));
  });
}

TEST(COperations, RegistersMemory) {
  c_world(2, [](tutti_comm* comm) {
    std::vector<float> data(1 << 20, 1);
    tutti_registration* registration = nullptr;
    ASSERT_EQ(tutti_register_memory(comm, data.data(), data.size() * sizeof(float), &registration), TUTTI_OK);
    EXPECT_EQ(tutti_broadcast(comm, data.data(), data.size(), TUTTI_FLOAT32, 0, nullptr, nullptr), TUTTI_OK);
    tutti_statistics statistics = TUTTI_STATISTICS_INIT;
    EXPECT_EQ(tutti_comm_statistics(comm, &statistics), TUTTI_OK);
    EXPECT_EQ(statistics.bytes_in_place, 0u) << "neither shm nor tcp writes into a peer's memory";
    tutti_registration_free(registration);
    EXPECT_EQ(tutti_register_memory(comm, data.data(), 4, nullptr), TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tutti_register_memory(comm, nullptr, 4, &registration), TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tutti_register_memory(nullptr, data.data(), 4, &registration), TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(registration, nullptr);
  });
}

TEST(COperations, AnEventLoopDrivesIt) {
  c_world(2, [](tutti_comm* comm) {
    std::int64_t value = 1;
    tutti_work* work = nullptr;
    ASSERT_EQ(tutti_all_reduce(comm, TUTTI_IN_PLACE, &value, 1, TUTTI_INT64, TUTTI_SUM, nullptr, &work),
              TUTTI_OK);
    pollfd watched{tutti_comm_descriptor(comm), POLLIN, 0};
    while (tutti_work_test(work) == 0) {
      poll(&watched, 1, 10);
      tutti_comm_progress(comm);
    }
    EXPECT_EQ(value, 2);
    tutti_work_free(work);
  });
}

}  // namespace
}  // namespace tutti::test
