#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_cuda.h"
#include "tests/support/fake_cuda_memory.h"
#include "tests/support/toy_stream.h"
#include "transport/cuda/api.h"

// A `CUctx_st` is a context of the fake CUDA. Only the primary context of a device uses `users`.
struct CUctx_st {
  int device = 0;
  int users = 0;
};

namespace tutti::test {

// These are errors of the CUDA driver, with their values in cuda.h.
inline constexpr cuda::Outcome invalid_value = 1;
using cuda::capture_implicit;
using cuda::invalid_handle;
using cuda::not_initialized;
using cuda::out_of_memory;
inline constexpr cuda::Outcome no_device = 100;
inline constexpr cuda::Outcome invalid_device = 101;
inline constexpr cuda::Outcome invalid_context = 201;
inline constexpr cuda::Outcome capture_unsupported = 900;
inline constexpr cuda::Outcome capture_invalidated = 901;
inline constexpr cuda::Outcome captured_event = 907;

inline constexpr int capture_status_active = 1;
inline constexpr int capture_status_invalidated = 2;

// A `FakeStream` executes its work on a thread, unless it is being captured.
struct FakeStream {
  explicit FakeStream(CUctx_st* of) : context(of) {}

  CUctx_st* const context;
  int capture_status = cuda::capture_status_none;
  int capture_mode = 0;
  std::thread::id capturer;
  std::atomic<int> pieces{0};  // pieces of work that have not been done
  ToyStream work;
};

struct FakeEvent {
  CUctx_st* context = nullptr;
  std::shared_ptr<ToyEvent> last;  // the last recording, or null if there was none
  bool captured = false;           // recorded while the stream was being captured
};

// A `FakeMachine` is the state of the fake CUDA in this process. `mutex` guards all members except
// `memory` and the atomic members.
class FakeMachine {
 public:
  // Returns the machine of this process. The machine is never destroyed, since its threads may run until the
  // end.
  static FakeMachine& the();

  // Most functions of the driver call `enter` first. `enter` returns success, or the error that the
  // function must return at once.
  cuda::Outcome enter(const char* function);
  // Functions that may be forbidden during a capture also call `forbid_in_captures`. The capture modes of the
  // calling thread and of a captured stream decide whether the call is forbidden. For a forbidden call,
  // this function invalidates the capture and returns an error.
  cuda::Outcome forbid_in_captures();
  // Returns the context that is current to the calling thread, or null.
  static CUctx_st* current();
  // Returns a stream, or null. `mutex` must be held.
  FakeStream* find(cuda::StreamHandle handle);
  // Returns a stream's context, or null if there is no such stream. `mutex` must not be held.
  CUctx_st* context_of(cuda::StreamHandle handle);
  // Adds work to a stream. A stream that is being captured does not execute it. `mutex` must be held.
  static void add(FakeStream& stream, std::function<void()> work);
  // Waits for room, and then adds work to the stream with this handle. `mutex` must not be held.
  cuda::Outcome add(cuda::StreamHandle handle, std::function<void()> work);
  // Waits until a stream has room for more work. `mutex` must not be held.
  void await_room(cuda::StreamHandle handle);
  // Waits until a stream has done its work.
  cuda::Outcome synchronise(cuda::StreamHandle handle);
  cuda::Outcome copy(cuda::Address to, cuda::Address from, std::size_t bytes);
  // Ends the default streams. If the devices are broken, this function also waits for destroyed
  // streams, because their work is skipped only as long as the devices are broken.
  void end_streams();
  // Waits as long as copies are held.
  void await_copies() const;
  // Counts a call that makes the calling thread wait for a device.
  void count_synchronisation() { ++synchronisations; }

  static thread_local std::vector<CUctx_st*> contexts_of_thread;
  static thread_local int capture_mode_of_thread;
  static constexpr int most_devices = 64;

  std::mutex mutex;
  bool initialized = false;
  int devices = 2;
  int capability = 90;
  bool has_instances = false;       // all devices are instances of the first
  CUctx_st contexts[most_devices];  // the primary contexts
  std::list<CUctx_st> other_contexts;
  std::map<cuda::StreamHandle, std::unique_ptr<FakeStream>> streams;
  std::map<CUctx_st*, std::unique_ptr<FakeStream>> default_streams;
  std::map<cuda::EventHandle, FakeEvent> events;
  struct Failure {
    int calls_before = 0;
    cuda::Outcome error = cuda::success;
  };
  std::map<std::string, Failure> failures;  // the key is the name of the function
  FakeMemory memory;
  // Each copy holds `copying` (shared), and `fake_cuda_break` holds it alone. So no copy is running after the
  // devices have been broken.
  std::shared_mutex copying;
  std::atomic<cuda::Outcome> broken{cuda::success};
  std::atomic<unsigned> copy_microseconds{0};
  std::atomic<bool> holds_copies{false};
  std::atomic<int> room_of_streams{0};       // 0 means no limit
  std::atomic<bool> has_failed_push{false};  // a call could not make a context current
  std::atomic<int> waiting_for_room{0};
  std::atomic<int> ending_streams{0};  // destroyed streams that may still be working
  std::atomic<int> copies{0};
  std::atomic<int> synchronisations{0};

 private:
  FakeMachine();
};

}  // namespace tutti::test

// Most functions of the driver begin with the first of these macros. Each macro makes the function
// return at once after an error.
#define FAKE_CUDA_ENTER()                                                                  \
  if (const tutti::cuda::Outcome failed = tutti::test::FakeMachine::the().enter(__func__); \
      failed != tutti::cuda::success)                                                      \
  return failed
#define FAKE_CUDA_FORBID_IN_CAPTURES()                                                          \
  if (const tutti::cuda::Outcome failed = tutti::test::FakeMachine::the().forbid_in_captures(); \
      failed != tutti::cuda::success)                                                           \
  return failed
#define FAKE_CUDA_REQUIRE(condition, error) \
  if (!(condition)) return tutti::test::error
