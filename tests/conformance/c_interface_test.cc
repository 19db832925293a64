// What the C interface promises besides right answers, in a world of threads that meet through
// tutti_init_store.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <poll.h>

#include <tutti/c.h>

#include "rendezvous/store/memory/memory_store.h"

namespace tutti::test {
namespace {

using std::chrono::nanoseconds;
using testing::HasSubstr;
using testing::StartsWith;

// A C store by a C++ one: each function answers as the header says.
int answer(const Status& status) {
  return status.ok() ? TUTTI_OK : tutti_error_set(static_cast<int>(status.code()), status.message().c_str());
}

std::string_view text(const void* data, size_t size) { return {static_cast<const char*>(data), size}; }

Store& behind(void* state) { return *static_cast<Store*>(state); }
Deadline in(int64_t timeout_ns) { return Deadline::after(nanoseconds(timeout_ns)); }

tutti_store c_store(Store& store) {
  tutti_store with = TUTTI_STORE_INIT;
  with.state = &store;
  with.set = [](void* state, const char* key, const void* value, size_t size, int64_t timeout) {
    return answer(behind(state).set(key, text(value, size), in(timeout)));
  };
  with.get = [](void* state, const char* key, int64_t timeout, tutti_bytes* value) {
    const auto got = behind(state).get(key, in(timeout));
    return got.ok() ? tutti_bytes_set(value, (*got).data(), (*got).size()) : answer(got.status());
  };
  with.wait = [](void* state, const char* const* keys, size_t count, int64_t timeout) {
    return answer(behind(state).wait(std::vector<std::string>(keys, keys + count), in(timeout)));
  };
  with.add = [](void* state, const char* key, int64_t delta, int64_t timeout, int64_t* sum) {
    const auto got = behind(state).add(key, delta, in(timeout));
    if (got.ok()) *sum = *got;
    return answer(got.status());
  };
  with.compare_set = [](void* state, const char* key, const void* expected, size_t expected_size,
                        const void* desired, size_t desired_size, int64_t timeout, tutti_bytes* value) {
    const auto got = behind(state).compare_set(key, text(expected, expected_size),
                                               text(desired, desired_size), in(timeout));
    return got.ok() ? tutti_bytes_set(value, (*got).data(), (*got).size()) : answer(got.status());
  };
  with.delete_key = [](void* state, const char* key, int64_t timeout, int* existed) {
    const auto got = behind(state).delete_key(key, in(timeout));
    if (got.ok()) *existed = *got ? 1 : 0;
    return answer(got.status());
  };
  return with;
}

// Calls `body` with each rank's communicator on a thread of its own.
void world(int size, const std::function<void(tutti_comm*)>& body, int64_t timeout_ns = 60'000'000'000) {
  MemoryStore store;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      const tutti_store with = c_store(store);
      tutti_init_options options = TUTTI_INIT_OPTIONS_INIT;
      options.timeout_ns = timeout_ns;
      options.transports = "shm,tcp";
      tutti_comm* comm = nullptr;
      ASSERT_EQ(tutti_init_store(&with, rank, size, &options, &comm), TUTTI_OK) << tutti_error_message();
      EXPECT_EQ(tutti_comm_rank(comm), rank);
      EXPECT_EQ(tutti_comm_size(comm), size);
      body(comm);
      tutti_comm_free(comm);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

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
  tutti_op_free(nullptr);
  tutti_op_free(TUTTI_SUM);
  world(1, [](tutti_comm* alone) {
    float value = 1;
    tutti_work* work = nullptr;
    EXPECT_EQ(tutti_broadcast(alone, &value, 1, 77, 0, nullptr, &work), TUTTI_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(tutti_error_message(), HasSubstr("77 is no data type"));
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
  world(2, [](tutti_comm* comm) {
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

// A caller that was compiled when the structure had one member less.
TEST(CInterface, OldStructuresAreUnderstood) {
  world(1, [](tutti_comm* comm) {
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

TEST(CInterface, MessagesFromAnybodyWithAnyTag) {
  world(3, [](tutti_comm* comm) {
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

TEST(CInterface, ABatchIsOverWhenItsLastTransferIs) {
  world(3, [](tutti_comm* comm) {
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

TEST(CInterface, WorkIsWaitedForAskedAndChained) {
  world(2, [](tutti_comm* comm) {
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
    EXPECT_EQ(tutti_work_then(copy, tell, &told), TUTTI_OK);  // over already: at once
    while (told.calls != 2) std::this_thread::yield();        // the first may run on another thread
    EXPECT_EQ(told.code, TUTTI_OK);
    EXPECT_EQ(told.message, "");
    tutti_work_free(copy);
  });
}

TEST(CInterface, AbortEndsWhatIsPendingEverywhere) {
  world(2, [](tutti_comm* comm) {
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

TEST(CInterface, TimeoutsNameWhoIsLate) {
  world(2, [](tutti_comm* comm) {
    if (tutti_comm_rank(comm) == 1) return;
    tutti_call_options options = TUTTI_CALL_OPTIONS_INIT;
    options.timeout_ns = 50'000'000;
    char byte = 0;
    const int code = tutti_recv(comm, &byte, 1, TUTTI_UINT8, 1, 0, &options, nullptr);
    // Rank 1 may have left before this one's time was over.
    EXPECT_TRUE(code == TUTTI_ERROR_TIMEOUT || code == TUTTI_ERROR_ABORTED) << tutti_error_message();
    EXPECT_THAT(tutti_error_message(), HasSubstr("rank 1"));
  });
}

// Long enough for what is late to be noticed and spoken about among the ranks.
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
    world(2, body, forever);
  }
}

TEST(CInterface, NegativeTimesAreRefused) {
  tutti_init_options backwards = TUTTI_INIT_OPTIONS_INIT;
  backwards.timeout_ns = -1;
  tutti_comm* comm = nullptr;
  EXPECT_EQ(tutti_init(&backwards, &comm), TUTTI_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(tutti_error_message(), HasSubstr("must not be negative"));
  world(1, [](tutti_comm* alone) {
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
  world(3, [](tutti_comm* comm) {
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

// The control plane, the mesh and the world remember which communicators there were, as ranges.
TEST(CInterface, ASplitThatIsFreedLeavesNothingBehind) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have an allocator of their own, which is not asked how much it has given out";
#endif
  constexpr int splits = 400;
  world(2, [](tutti_comm* comm) {
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

TEST(CInterface, ShrinksToThoseThatAreLeft) {
  world(3, [](tutti_comm* comm) {
    tutti_comm* old = nullptr;
    ASSERT_EQ(tutti_comm_split(comm, 0, 0, &old), TUTTI_OK) << tutti_error_message();
    EXPECT_EQ(tutti_barrier(old, nullptr, nullptr), TUTTI_OK);
    EXPECT_EQ(tutti_barrier(comm, nullptr, nullptr),
              TUTTI_OK);  // all are through: shrinking ends the old one
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

TEST(CInterface, AllocatesSharedMemory) {
  world(2, [](tutti_comm* comm) {
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

TEST(CInterface, AnEventLoopDrivesIt) {
  world(2, [](tutti_comm* comm) {
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
