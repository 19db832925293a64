#pragma once

#include <atomic>
#include <functional>
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

// A context of the fake CUDA is the primary context of a device.
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
  std::atomic<int> pieces{0};  // of work that have not been done
  ToyStream work;
};

struct FakeEvent {
  CUctx_st* context = nullptr;
  std::shared_ptr<ToyEvent> last;  // the last recording; null: there was none
  bool captured = false;           // recorded while the stream was being captured
};

// A `FakeMachine` is the state of the fake CUDA in this process. `mutex` guards all members but the atomic
// ones and `memory`.
class FakeMachine {
 public:
  // Returns the machine of this process. It is never destroyed, since its threads may run until the end.
  static FakeMachine& the();

  // Most functions of the driver call this first. Returns ok, or the error that the function must return at
  // once.
  cuda::Outcome enter(const char* function);
  // Functions that must not be called during a capture call this, too. If the capture modes of the calling
  // thread and of a stream that is being captured forbid the call, this invalidates the capture and returns
  // an error.
  cuda::Outcome forbid_in_captures();
  // Returns the context that is current to the calling thread, or null.
  static CUctx_st* current();
  // Returns a stream, or null. `mutex` must be held.
  FakeStream* find(cuda::StreamHandle handle);
  // Adds work to a stream. A stream that is being captured does not execute it. `mutex` must be held.
  static void add(FakeStream& stream, std::function<void()> work);
  // Waits for room, and does the same; `mutex` must not be held.
  cuda::Outcome add(cuda::StreamHandle handle, std::function<void()> work);
  // Waits until a stream has room for more work. `mutex` must not be held.
  void await_room(cuda::StreamHandle handle);
  // Waits until a stream has done its work.
  cuda::Outcome synchronise(cuda::StreamHandle handle);
  cuda::Outcome copy(cuda::Address to, cuda::Address from, std::size_t bytes);
  // Ends the default streams. If the devices are broken, also waits for the streams that have been destroyed:
  // their work is skipped only as long as the devices are broken.
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
  bool has_instances = false;  // all devices are instances of the first
  CUctx_st contexts[most_devices];
  std::map<cuda::StreamHandle, std::unique_ptr<FakeStream>> streams;
  std::map<CUctx_st*, std::unique_ptr<FakeStream>> default_streams;
  std::map<cuda::EventHandle, FakeEvent> events;
  struct Failure {
    int calls_before = 0;
    cuda::Outcome error = cuda::success;
  };
  std::map<std::string, Failure> failures;  // by function
  FakeMemory memory;
  // A copy holds `copying` (shared), so that no copy is under way once the devices are broken.
  std::shared_mutex copying;
  std::atomic<cuda::Outcome> broken{cuda::success};
  std::atomic<unsigned> copy_microseconds{0};
  std::atomic<bool> holds_copies{false};
  std::atomic<int> room_of_streams{0};       // 0: without a limit
  std::atomic<bool> has_failed_push{false};  // a context could not be made current
  std::atomic<int> waiting_for_room{0};
  std::atomic<int> ending_streams{0};  // that have been destroyed, but may still work
  std::atomic<int> copies{0};
  std::atomic<int> synchronisations{0};

 private:
  FakeMachine();
};

}  // namespace tutti::test

// Most functions of the driver begin with the first of these macros. Each macro makes the function return at
// once if there is an error.
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
