#include "bindings/torch/store.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "bindings/torch/error.h"
#include "bindings/torch/work.h"

namespace tutti_torch {
namespace {

using Bytes = std::vector<std::uint8_t>;

c10d::Store& store_of(void* state) { return *static_cast<c10d::Store*>(state); }

Bytes bytes_of(const void* data, std::size_t size) {
  const auto* first = static_cast<const std::uint8_t*>(data);
  return {first, first + size};
}

// Runs a callback's body, and turns exceptions into codes. c10d's stores throw the same exception
// type for a timeout and for other failures. So the caller passes the most likely code as
// `failure`.
template <class Body>
int guarded(int failure, Body body) {
  try {
    body();
    return TUTTI_OK;
  } catch (const c10::Error& error) {
    return tutti_error_set(failure, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return tutti_error_set(failure, error.what());
  }
}

int set(void* state, const char* key, const void* value, std::size_t size, std::int64_t) {
  return guarded(TUTTI_ERROR_UNREACHABLE, [&] { store_of(state).set(key, bytes_of(value, size)); });
}

// Polls the store. c10d's own wait is not used, since it writes a warning to stderr whenever it
// times out. Such timeouts would be frequent, since ranks split long waits into short ones while
// they meet.
int wait(void* state, const char* const* keys, std::size_t count, std::int64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::nanoseconds longest_pause = std::chrono::milliseconds(50);
  const Clock::time_point began = Clock::now();
  std::chrono::nanoseconds pause = std::chrono::milliseconds(1);
  bool there = false;
  for (;;) {
    const int code = guarded(TUTTI_ERROR_UNREACHABLE, [&] {
      there = store_of(state).check({keys, keys + count});
    });
    if (code != TUTTI_OK || there) return code;
    const std::chrono::nanoseconds left = std::chrono::nanoseconds(timeout_ns) - (Clock::now() - began);
    if (left.count() <= 0) return tutti_error_set(TUTTI_ERROR_TIMEOUT, "the keys were not set in time");
    std::this_thread::sleep_for(std::min(left, pause));
    pause = std::min(2 * pause, longest_pause);
  }
}

int get(void* state, const char* key, std::int64_t timeout_ns, tutti_bytes* value) {
  if (const int code = wait(state, &key, 1, timeout_ns); code != TUTTI_OK) return code;
  return guarded(TUTTI_ERROR_UNREACHABLE, [&] {
    const Bytes bytes = store_of(state).get(key);
    tutti_bytes_set(value, bytes.data(), bytes.size());
  });
}

int add(void* state, const char* key, std::int64_t delta, std::int64_t, std::int64_t* sum) {
  return guarded(TUTTI_ERROR_UNREACHABLE, [&] { *sum = store_of(state).add(key, delta); });
}

int compare_set(void* state, const char* key, const void* expected, std::size_t expected_size,
                const void* desired, std::size_t desired_size, std::int64_t, tutti_bytes* value) {
  return guarded(TUTTI_ERROR_UNREACHABLE, [&] {
    const Bytes wanted = bytes_of(desired, desired_size);
    const Bytes bytes = store_of(state).compareSet(key, bytes_of(expected, expected_size), wanted);
    // A TCPStore without libuv does not wake the clients that wait for a key when compareSet makes
    // the key. This call of `set` wakes them. It overwrites nothing, because no other client
    // changes such a key while ranks meet.
    if (expected_size == 0 && bytes == wanted) store_of(state).set(key, wanted);
    tutti_bytes_set(value, bytes.data(), bytes.size());
  });
}

int delete_key(void* state, const char* key, std::int64_t, int* existed) {
  return guarded(TUTTI_ERROR_UNREACHABLE, [&] { *existed = store_of(state).deleteKey(key) ? 1 : 0; });
}

int exists(void* state, const char* key, std::int64_t, int* there) {
  return guarded(TUTTI_ERROR_UNREACHABLE, [&] { *there = store_of(state).check({key}) ? 1 : 0; });
}

// Returns 1 if Ctrl-C must end `meet`. `state` points to an exception_ptr, which then holds the exception
// that Ctrl-C raised.
int interrupted(void* state) {
  try {
    check_interrupt();
    return 0;
  } catch (...) {
    *static_cast<std::exception_ptr*>(state) = std::current_exception();
    return 1;
  }
}

}  // namespace

tutti_comm* meet(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                 std::chrono::milliseconds timeout) {
  // These ranks may have met in the same store before, so each meeting has its own prefix.
  const std::int64_t meeting = store->add("tutti/meetings/" + std::to_string(rank), 1);
  const auto own = c10::make_intrusive<c10d::PrefixStore>("meeting " + std::to_string(meeting), store);
  tutti_store functions = TUTTI_STORE_INIT;
  functions.state = static_cast<c10d::Store*>(own.get());
  functions.set = set;
  functions.get = get;
  functions.wait = wait;
  functions.add = add;
  functions.compare_set = compare_set;
  functions.delete_key = delete_key;
  functions.exists = exists;
  tutti_init_options options = TUTTI_INIT_OPTIONS_INIT;
  options.timeout_ns = std::chrono::nanoseconds(timeout).count();
  std::exception_ptr interrupt;
  options.interrupted = interrupted;
  options.interrupted_state = &interrupt;
  tutti_comm* comm = nullptr;
  const int code = tutti_init_store(&functions, rank, size, &options, &comm);
  if (code != TUTTI_OK && interrupt != nullptr) std::rethrow_exception(interrupt);
  if (code != TUTTI_OK) std::rethrow_exception(last_error(code, "meeting the other ranks", timeout));
  return comm;
}

}  // namespace tutti_torch
