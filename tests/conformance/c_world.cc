#include "tests/conformance/c_world.h"

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "rendezvous/store/memory/memory_store.h"

namespace tutti::test {
namespace {

int answer(const Status& status) {
  return status.ok() ? TUTTI_OK : tutti_error_set(static_cast<int>(status.code()), status.message().c_str());
}

std::string_view text(const void* data, size_t size) { return {static_cast<const char*>(data), size}; }

Store& behind(void* state) { return *static_cast<Store*>(state); }
Deadline in(int64_t timeout_ns) { return Deadline::after(std::chrono::nanoseconds(timeout_ns)); }

}  // namespace

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

void c_world(int size, const std::function<void(tutti_comm*)>& body, std::int64_t timeout_ns) {
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

}  // namespace tutti::test
