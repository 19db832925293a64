// Tests what the C interface promises besides correct results: errors, structures, times and groups.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <tutti/c.h>

#include "rendezvous/store/memory/memory_store.h"
#include "tests/conformance/c_world.h"

namespace tutti::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(CInterface, NamesItsCodesAndTypes) {
  EXPECT_STREQ(tutti_code_name(TUTTI_OK), "ok");
  EXPECT_STREQ(tutti_code_name(TUTTI_ERROR_PROTOCOL), "protocol_error");
  EXPECT_STREQ(tutti_code_name(99), "unknown");
  EXPECT_STREQ(tutti_data_type_name(TUTTI_BFLOAT16), "bfloat16");
  EXPECT_STREQ(tutti_data_type_name(-1), "unknown");
  EXPECT_EQ(tutti_data_type_size(TUTTI_FLOAT64), 8u);
  EXPECT_EQ(tutti_data_type_size(13), 0u);
  EXPECT_THAT(tutti_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(CInterface, ErrorsBelongToTheirThread) {
  EXPECT_EQ(tutti_error_set(TUTTI_ERROR_TIMEOUT, "here"), TUTTI_ERROR_TIMEOUT);
  std::thread([] {
    EXPECT_STREQ(tutti_error_message(), "");
    EXPECT_EQ(tutti_error_set(TUTTI_ERROR_ABORTED, nullptr), TUTTI_ERROR_ABORTED);
    EXPECT_STREQ(tutti_error_message(), "aborted: ");
  }).join();
  EXPECT_STREQ(tutti_error_message(), "timeout: here");
  EXPECT_EQ(tutti_error_peer(), -1);
}

TEST(CInterface, WrongArgumentsAreToldApart) {
  EXPECT_EQ(tutti_all_reduce(nullptr, nullptr, nullptr, 0, TUTTI_INT8, TUTTI_SUM, nullptr, nullptr),
            TUTTI_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(tutti_error_message(), HasSubstr("the communicator is null"));
  EXPECT_EQ(tutti_work_wait(nullptr), TUTTI_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tutti_init(nullptr, nullptr), TUTTI_ERROR_INVALID_ARGUMENT);
  tutti_comm* comm = nullptr;
  tutti_store store = TUTTI_STORE_INIT;
  EXPECT_EQ(tutti_init_store(&store, 0, 1, nullptr, &comm), TUTTI_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(tutti_error_message(), HasSubstr("a store needs all of"));
  tutti_work_free(nullptr);
  tutti_comm_free(nullptr);
  tutti_allocation_free(nullptr);
  tutti_registration_free(nullptr);
  tutti_op_free(nullptr);
  tutti_op_free(TUTTI_SUM);
  c_world(1, [](tutti_comm* alone) {
    float value = 1;
    tutti_work* work = nullptr;
    EXPECT_EQ(tutti_broadcast(alone, &value, 1, 77, 0, nullptr, &work), TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(tutti_error_message(), HasSubstr("77 is not a data type"));
    EXPECT_EQ(work, nullptr);
    EXPECT_EQ(tutti_all_reduce(alone, &value, &value, 1, TUTTI_FLOAT32, nullptr, nullptr, nullptr),
              TUTTI_ERROR_INVALID_ARGUMENT);
    const std::uint64_t count = 1;
    EXPECT_EQ(tutti_all_gather_v(alone, TUTTI_IN_PLACE, &value, &count, TUTTI_FLOAT32, nullptr, nullptr),
              TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tutti_all_gather(alone, &value, &value, SIZE_MAX / 2, TUTTI_FLOAT32, nullptr, nullptr),
              TUTTI_ERROR_INVALID_ARGUMENT);
  });
}

TEST(CInterface, AnOperationOfTheUsersThatFailsSaysWhyToAll) {
  c_world(2, [](tutti_comm* comm) {
    const auto fail_on_rank_1 = [](const void*, const void*, void*, size_t, tutti_data_type, void* state) {
      return *static_cast<int*>(state) == 1 ? tutti_error_set(TUTTI_ERROR_INTERNAL, "no such element")
                                            : TUTTI_OK;
    };
    int rank = tutti_comm_rank(comm);
    tutti_op op = nullptr;
    ASSERT_EQ(tutti_op_create_user("picky", fail_on_rank_1, 1, &rank, &op), TUTTI_OK);
    std::int64_t values[3] = {1, 2, 3};
    EXPECT_EQ(tutti_all_reduce(comm, TUTTI_IN_PLACE, values, 3, TUTTI_INT64, op, nullptr, nullptr),
              TUTTI_ERROR_ABORTED);
    EXPECT_THAT(tutti_error_message(), HasSubstr("its operation \"picky\" failed: no such element"));
    EXPECT_EQ(tutti_error_peer(), 1);
    tutti_op_free(op);
  });
}

// The caller was compiled against an older header, in which the structures had fewer members.
TEST(CInterface, OldStructuresAreUnderstood) {
  c_world(1, [](tutti_comm* comm) {
    tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
    options.struct_size = offsetof(tutti_call_options, algorithm);
    options.algorithm = reinterpret_cast<const char*>(1);
    EXPECT_EQ(tutti_barrier(comm, &options, nullptr), TUTTI_OK);
    tutti_statistics statistics = TUTTI_STATISTICS_INIT;
    statistics.struct_size = offsetof(tutti_statistics, connections);
    statistics.connections = 4711;
    EXPECT_EQ(tutti_comm_statistics(comm, &statistics), TUTTI_OK);
    EXPECT_EQ(statistics.struct_size, offsetof(tutti_statistics, connections));
    EXPECT_GT(statistics.operations, 0u);
    EXPECT_EQ(statistics.connections, 4711u);
  });
}

// The caller was compiled against a header without device memory, so all of its buffers are host memory.
TEST(CInterface, OptionsWithoutAMemoryMeanHostMemory) {
  c_world(2, [](tutti_comm* comm) {
    tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
    options.struct_size = offsetof(tutti_call_options, memory);
    options.memory = 4711;
    options.stream = comm;
    options.region = comm;
    std::int32_t value = 1;
    EXPECT_EQ(tutti_all_reduce(comm, TUTTI_IN_PLACE, &value, 1, TUTTI_INT32, TUTTI_SUM, &options, nullptr),
              TUTTI_OK)
        << tutti_error_message();
    EXPECT_EQ(value, 2);
  });
}

// No process can access these addresses, so a test crashes if the library accesses them.
void* const of_a_device = reinterpret_cast<void*>(std::uintptr_t{0x1000});
void* const also_of_a_device = reinterpret_cast<void*>(std::uintptr_t{0x8000});

TEST(CInterface, DeviceMemoryIsRefusedOnAllRanks) {
  c_world(3, [](tutti_comm* comm) {
    const int rank = tutti_comm_rank(comm);
    tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
    options.memory = TUTTI_CUDA;
    options.device = rank;
    const std::uint64_t counts[] = {1, 1, 1};
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(
          tutti_all_reduce(comm, TUTTI_IN_PLACE, of_a_device, 1, TUTTI_INT32, TUTTI_SUM, &options, nullptr),
          TUTTI_ERROR_UNSUPPORTED)
          << tutti_error_message();
      EXPECT_THAT(tutti_error_message(), HasSubstr("all_reduce(count=1, int32, sum, on a device)"));
      tutti_work* work = nullptr;
      EXPECT_EQ(tutti_gather_v(comm, of_a_device, 1, also_of_a_device, rank == 0 ? counts : nullptr,
                               TUTTI_UINT8, 0, &options, &work),
                TUTTI_OK);
      EXPECT_EQ(tutti_work_wait(work), TUTTI_ERROR_UNSUPPORTED);
      tutti_work_free(work);
      EXPECT_EQ(tutti_send(comm, of_a_device, 1, TUTTI_UINT8, 0, 0, &options, nullptr),
                TUTTI_ERROR_UNSUPPORTED);
      EXPECT_EQ(tutti_barrier(comm, &options, nullptr), TUTTI_OK) << tutti_error_message();
    }
    EXPECT_EQ(tutti_comm_status(comm), TUTTI_OK);
  });
}

TEST(CInterface, HostMemoryOnOneRankIsAMismatchOnAll) {
  c_world(2, [](tutti_comm* comm) {
    float value = 1;
    tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
    options.memory = tutti_comm_rank(comm) == 0 ? TUTTI_CUDA : TUTTI_HOST;
    EXPECT_EQ(tutti_broadcast(comm, &value, 1, TUTTI_FLOAT32, 0, &options, nullptr), TUTTI_ERROR_MISMATCH);
    EXPECT_THAT(tutti_error_message(), HasSubstr("broadcast(count=1, float32, root=0, on a device)"));
  });
}

TEST(CInterface, OptionsThatNothingUsesAreRefused) {
  c_world(1, [](tutti_comm* alone) {
    const auto outcome = [&](auto change) {
      tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
      change(options);
      float value = 1;
      return tutti_broadcast(alone, &value, 1, TUTTI_FLOAT32, 0, &options, nullptr);
    };
    EXPECT_EQ(outcome([&](auto& options) { options.stream = alone; }), TUTTI_ERROR_UNSUPPORTED);
    EXPECT_EQ(outcome([&](auto& options) { options.region = alone; }), TUTTI_ERROR_UNSUPPORTED);
    EXPECT_EQ(outcome([](auto& options) { options.memory = 2; }), TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(tutti_error_message(), HasSubstr("2 is not a kind of memory"));
    for (const int device : {-1, 1 << 24}) {
      const int code = outcome([&](auto& options) { options.memory = TUTTI_CUDA, options.device = device; });
      EXPECT_EQ(code, TUTTI_ERROR_INVALID_ARGUMENT);
      EXPECT_THAT(tutti_error_message(), HasSubstr(std::to_string(device) + " is not a CUDA device"));
    }
  });
}

TEST(CInterface, APlaceIsKnownWithoutMeeting) {
  tutti_init_options options = TUTTI_INIT_OPTIONS_INIT;
  options.url = "tcp://127.0.0.1:1?rank=3&world_size=5";
  int rank = -1;
  int size = -1;
  EXPECT_EQ(tutti_place(&options, &rank, &size), TUTTI_OK) << tutti_error_message();
  EXPECT_EQ(rank, 3);
  EXPECT_EQ(size, 5);
  options.rank = 5;
  EXPECT_EQ(tutti_place(&options, &rank, &size), TUTTI_ERROR_INVALID_ARGUMENT);
}

TEST(CInterface, TimeoutsNameWhoIsLate) {
  c_world(2, [](tutti_comm* comm) {
    if (tutti_comm_rank(comm) == 1) return;
    tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
    options.timeout_ns = 50'000'000;
    char byte = 0;
    const int code = tutti_recv(comm, &byte, 1, TUTTI_UINT8, 1, 0, &options, nullptr);
    // Rank 1 may leave before this rank's time limit. In that case this rank gets `aborted`.
    EXPECT_TRUE(code == TUTTI_ERROR_TIMEOUT || code == TUTTI_ERROR_ABORTED) << tutti_error_message();
    EXPECT_THAT(tutti_error_message(), HasSubstr("rank 1"));
  });
}

// This time is long enough for the ranks to notice a late rank, and to tell each other.
constexpr std::chrono::milliseconds noticed{300};

TEST(CInterface, TimesThatTheClockCannotCountHaveNoEnd) {
  for (const int64_t forever : {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2}) {
    const auto body = [&](tutti_comm* comm) {
      tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
      options.timeout_ns = forever;
      const int peer = 1 - tutti_comm_rank(comm);
      float given = 1, taken = 0;
      tutti_work* work = nullptr;
      EXPECT_EQ(tutti_recv(comm, &taken, 1, TUTTI_FLOAT32, peer, 3, &options, &work), TUTTI_OK);
      std::this_thread::sleep_for(noticed);
      EXPECT_EQ(tutti_barrier(comm, &options, nullptr), TUTTI_OK) << tutti_error_message();
      EXPECT_EQ(tutti_send(comm, &given, 1, TUTTI_FLOAT32, peer, 3, &options, nullptr), TUTTI_OK);
      int done = 0;
      EXPECT_EQ(tutti_work_wait_for(work, forever, &done), TUTTI_OK) << tutti_error_message();
      EXPECT_EQ(done, 1);
      tutti_work_free(work);
    };
    c_world(2, body, forever);
  }
}

TEST(CInterface, NegativeTimesAreRefused) {
  tutti_init_options backwards = TUTTI_INIT_OPTIONS_INIT;
  backwards.timeout_ns = -1;
  tutti_comm* comm = nullptr;
  EXPECT_EQ(tutti_init(&backwards, &comm), TUTTI_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(tutti_error_message(), HasSubstr("must not be negative"));
  c_world(1, [](tutti_comm* alone) {
    tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
    options.timeout_ns = INT64_MIN;
    EXPECT_EQ(tutti_barrier(alone, &options, nullptr), TUTTI_ERROR_INVALID_ARGUMENT);
    char byte = 0;
    tutti_work* work = nullptr;
    ASSERT_EQ(tutti_recv(alone, &byte, 1, TUTTI_UINT8, 0, 0, nullptr, &work), TUTTI_OK);
    int done = 1;
    EXPECT_EQ(tutti_work_wait_for(work, -1, &done), TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(done, 0);
    EXPECT_EQ(tutti_work_wait_for(work, 0, &done), TUTTI_OK);
    EXPECT_EQ(tutti_send(alone, &byte, 1, TUTTI_UINT8, 0, 0, nullptr, nullptr), TUTTI_OK);
    EXPECT_EQ(tutti_work_wait(work), TUTTI_OK);
    tutti_work_free(work);
  });
}

TEST(CInterface, SplitsShrinksAndDescribes) {
  c_world(3, [](tutti_comm* comm) {
    const int rank = tutti_comm_rank(comm);
    tutti_comm* part = nullptr;
    ASSERT_EQ(tutti_comm_split(comm, rank == 1 ? TUTTI_NO_COLOR : 4, -rank, &part), TUTTI_OK);
    ASSERT_EQ(part == nullptr, rank == 1);
    if (part != nullptr) {
      EXPECT_EQ(tutti_comm_size(part), 2);
      EXPECT_EQ(tutti_comm_rank(part), rank == 2 ? 0 : 1);  // ordered by key
      EXPECT_EQ(tutti_barrier(part, nullptr, nullptr), TUTTI_OK);
    }
    tutti_comm_free(part);

    char whole[200];
    const size_t length = tutti_comm_describe(comm, 2, whole, sizeof whole);
    EXPECT_THAT(whole, StartsWith("rank 2 (host "));
    EXPECT_EQ(std::strlen(whole), length);
    char cut[7];
    EXPECT_EQ(tutti_comm_describe(comm, 2, cut, sizeof cut), length);
    EXPECT_STREQ(cut, "rank 2");
    EXPECT_EQ(tutti_comm_describe(comm, 3, whole, sizeof whole), 0u);
  });
}

TEST(CInterface, MakesAGroupOfSomeRanks) {
  c_world(3, [](tutti_comm* comm) {
    const int rank = tutti_comm_rank(comm);
    const int ranks[] = {2, 0};
    tutti_comm* group = nullptr;
    if (rank == 1) {
      EXPECT_EQ(tutti_comm_group(comm, ranks, 2, 0, nullptr, &group), TUTTI_ERROR_INVALID_ARGUMENT);
      EXPECT_THAT(tutti_error_message(), HasSubstr("is not listed"));
    } else {
      ASSERT_EQ(tutti_comm_group(comm, ranks, 2, 0, nullptr, &group), TUTTI_OK) << tutti_error_message();
      EXPECT_EQ(tutti_comm_size(group), 2);
      EXPECT_EQ(tutti_comm_rank(group), rank == 2 ? 0 : 1);
      EXPECT_EQ(tutti_barrier(group, nullptr, nullptr), TUTTI_OK);
    }
    tutti_comm_free(group);
    EXPECT_EQ(tutti_comm_group(comm, nullptr, 1, 0, nullptr, &group), TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tutti_comm_group(comm, ranks, 2, 0, nullptr, nullptr), TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tutti_comm_group(nullptr, ranks, 2, 0, nullptr, &group), TUTTI_ERROR_INVALID_ARGUMENT);
  });
}

// The control plane, the mesh and the world each store the numbers of freed communicators as ranges. So a
// split whose communicator is freed does not make their memory grow.
TEST(CInterface, ASplitThatIsFreedLeavesNothingBehind) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have an allocator of their own, which is not asked how much it has given out";
#endif
  constexpr int splits = 400;
  c_world(2, [](tutti_comm* comm) {
    const auto split_and_free = [&] {
      for (int i = 0; i < splits; ++i) {
        tutti_comm* part = nullptr;
        ASSERT_EQ(tutti_comm_split(comm, 0, 0, &part), TUTTI_OK) << tutti_error_message();
        tutti_comm_free(part);
      }
      EXPECT_EQ(tutti_barrier(comm, nullptr, nullptr), TUTTI_OK);
    };
    split_and_free();
    const size_t before = mallinfo2().uordblks;
    EXPECT_EQ(tutti_barrier(comm, nullptr, nullptr), TUTTI_OK);
    split_and_free();
    const size_t after = mallinfo2().uordblks;
    EXPECT_EQ(tutti_barrier(comm, nullptr, nullptr), TUTTI_OK);
    EXPECT_LT(after, before + size_t{2} * splits * 32);
  });
}

TEST(CInterface, AStoreThatFailsSaysWhy) {
  MemoryStore store;
  tutti_store with = c_store(store);
  with.add = [](void*, const char*, int64_t, int64_t, int64_t*) {
    return tutti_error_set(TUTTI_ERROR_PEER_LOST, "the store's host is down");
  };
  tutti_comm* comm = nullptr;
  EXPECT_EQ(tutti_init_store(&with, 0, 2, nullptr, &comm), TUTTI_ERROR_PEER_LOST);
  EXPECT_THAT(tutti_error_message(), HasSubstr("the store's add: the store's host is down"));
  EXPECT_EQ(comm, nullptr);
  with.add = [](void*, const char*, int64_t, int64_t, int64_t*) { return 1234; };
  EXPECT_EQ(tutti_init_store(&with, 0, 2, nullptr, &comm), TUTTI_ERROR_INTERNAL);
  EXPECT_THAT(tutti_error_message(), HasSubstr("the store's add returned 1234"));
}

}  // namespace
}  // namespace tutti::test
