#include <bit>
#include <cstdint>
#include <utility>

#include "tests/support/fake_cuda.h"
#include "tests/support/fake_cuda_machine.h"

using tutti::cuda::Address;
using tutti::cuda::EventHandle;
using tutti::cuda::Outcome;
using tutti::cuda::StreamHandle;
using tutti::cuda::success;
using tutti::test::FakeMachine;
using tutti::test::FakeStream;
using tutti::test::ToyEvent;

namespace {

FakeMachine& machine() { return FakeMachine::the(); }

std::uint32_t read_word(Address word) {
  auto* const place = std::bit_cast<std::uint32_t*>(machine().memory.view(word, sizeof(std::uint32_t)));
  return std::atomic_ref<std::uint32_t>(*place).load(std::memory_order_acquire);
}

}  // namespace

extern "C" {

// --- streams ---

Outcome cuStreamCreate(StreamHandle* handle, unsigned) {
  FAKE_CUDA_ENTER();
  FAKE_CUDA_REQUIRE(FakeMachine::current() != nullptr, invalid_context);
  auto stream = std::make_unique<FakeStream>(FakeMachine::current());
  *handle = std::bit_cast<StreamHandle>(stream.get());
  const std::lock_guard lock(machine().mutex);
  machine().streams[*handle] = std::move(stream);
  return success;
}

// This function returns at once. The stream does the rest of its work later.
Outcome cuStreamDestroy_v2(StreamHandle handle) {
  const std::lock_guard lock(machine().mutex);
  auto stream = machine().streams.extract(handle);
  FAKE_CUDA_REQUIRE(!stream.empty(), invalid_handle);
  ++machine().ending_streams;
  std::thread([ends = std::move(stream.mapped())]() mutable {
    ends.reset();
    --machine().ending_streams;
  }).detach();
  return success;
}

Outcome cuStreamSynchronize(StreamHandle stream) {
  FAKE_CUDA_ENTER();
  return machine().synchronise(stream);
}

Outcome cuStreamGetCtx(StreamHandle handle, CUctx_st** context) {
  FAKE_CUDA_ENTER();
  *context = machine().context_of(handle);
  return *context == nullptr ? tutti::test::invalid_handle : success;
}

Outcome cuStreamWaitEvent(StreamHandle handle, EventHandle event, unsigned) {
  FAKE_CUDA_ENTER();
  machine().await_room(handle);
  const std::lock_guard lock(machine().mutex);
  FakeStream* const stream = machine().find(handle);
  const auto found = machine().events.find(event);
  FAKE_CUDA_REQUIRE(stream != nullptr && found != machine().events.end(), invalid_handle);
  FAKE_CUDA_REQUIRE(!found->second.captured || stream->capture_status != tutti::cuda::capture_status_none,
                    captured_event);
  if (found->second.last != nullptr) machine().add(*stream, [last = found->second.last] { last->wait(); });
  return success;
}

// The documentation of the driver does not say that a stream of a context that is not current may wait for a
// value. So the fake does not permit it.
Outcome cuStreamWaitValue32_v2(StreamHandle stream, Address word, std::uint32_t value, unsigned flags) {
  FAKE_CUDA_ENTER();
  FAKE_CUDA_REQUIRE(machine().context_of(stream) == FakeMachine::current(), invalid_handle);
  FAKE_CUDA_REQUIRE(flags == tutti::cuda::wait_value_at_least, invalid_value);
  FAKE_CUDA_REQUIRE(machine().memory.is_of_device(word) || machine().memory.is_pinned(word), invalid_value);
  return machine().add(stream, [word, value] {
    while (machine().broken == success && static_cast<std::int32_t>(read_word(word) - value) < 0)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  });
}

Outcome cuStreamIsCapturing(StreamHandle handle, int* status) {
  FAKE_CUDA_ENTER();
  const std::lock_guard lock(machine().mutex);
  const FakeStream* const stream = machine().find(handle);
  FAKE_CUDA_REQUIRE(stream != nullptr, invalid_handle);
  *status = stream->capture_status;
  return success;
}

Outcome cuThreadExchangeStreamCaptureMode(int* mode) {
  FAKE_CUDA_ENTER();
  std::swap(*mode, FakeMachine::capture_mode_of_thread);
  return success;
}

Outcome cuStreamBeginCapture_v2(StreamHandle handle, int mode) {
  FAKE_CUDA_ENTER();
  const std::lock_guard lock(machine().mutex);
  FakeStream* const stream = machine().find(handle);
  FAKE_CUDA_REQUIRE(std::bit_cast<std::uintptr_t>(handle) > 1, capture_unsupported);
  FAKE_CUDA_REQUIRE(stream != nullptr && stream->capture_status == tutti::cuda::capture_status_none,
                    invalid_value);
  stream->capture_status = tutti::test::capture_status_active;
  stream->capture_mode = mode;
  stream->capturer = std::this_thread::get_id();
  return success;
}

Outcome cuStreamEndCapture(StreamHandle handle, CUgraph_st** graph) {
  FAKE_CUDA_ENTER();
  const std::lock_guard lock(machine().mutex);
  FakeStream* const stream = machine().find(handle);
  *graph = nullptr;
  FAKE_CUDA_REQUIRE(stream != nullptr && stream->capture_status != tutti::cuda::capture_status_none,
                    invalid_value);
  const bool valid = stream->capture_status == tutti::test::capture_status_active;
  stream->capture_status = tutti::cuda::capture_status_none;
  FAKE_CUDA_REQUIRE(valid, capture_invalidated);
  *graph = std::bit_cast<CUgraph_st*>(stream);
  return success;
}

Outcome cuGraphDestroy(CUgraph_st*) { return success; }

Outcome cuLaunchHostFunc(StreamHandle stream, void (*function)(void*), void* data) {
  FAKE_CUDA_ENTER();
  return machine().add(stream, [function, data] {
    if (machine().broken == success) function(data);
  });
}

// --- events ---

Outcome cuEventCreate(EventHandle* handle, unsigned) {
  FAKE_CUDA_ENTER();
  FAKE_CUDA_REQUIRE(FakeMachine::current() != nullptr, invalid_context);
  static std::uintptr_t last = 0;
  const std::lock_guard lock(machine().mutex);
  *handle = std::bit_cast<EventHandle>(++last);
  machine().events[*handle].context = FakeMachine::current();
  return success;
}

Outcome cuEventDestroy_v2(EventHandle event) {
  const bool may_lack_context = machine().has_failed_push || machine().broken != success;
  FAKE_CUDA_REQUIRE(FakeMachine::current() != nullptr || may_lack_context, invalid_context);
  const std::lock_guard lock(machine().mutex);
  return machine().events.erase(event) == 1 ? success : tutti::test::invalid_handle;
}

Outcome cuEventRecord(EventHandle event, StreamHandle handle) {
  FAKE_CUDA_ENTER();
  machine().await_room(handle);
  const std::lock_guard lock(machine().mutex);
  FakeStream* const stream = machine().find(handle);
  const auto found = machine().events.find(event);
  FAKE_CUDA_REQUIRE(stream != nullptr && found != machine().events.end(), invalid_handle);
  FAKE_CUDA_REQUIRE(stream->context == found->second.context, invalid_handle);
  found->second.captured = stream->capture_status != tutti::cuda::capture_status_none;
  if (found->second.captured) return success;
  found->second.last = std::make_shared<ToyEvent>();
  machine().add(*stream, [event = found->second.last] { event->happen(); });
  return success;
}

Outcome cuEventQuery(EventHandle event) {
  FAKE_CUDA_ENTER();
  FAKE_CUDA_FORBID_IN_CAPTURES();
  const std::lock_guard lock(machine().mutex);
  const auto found = machine().events.find(event);
  FAKE_CUDA_REQUIRE(found != machine().events.end(), invalid_handle);
  FAKE_CUDA_REQUIRE(!found->second.captured, captured_event);
  const bool happened = found->second.last == nullptr || found->second.last->happened();
  return happened ? success : tutti::cuda::not_ready;
}
}
