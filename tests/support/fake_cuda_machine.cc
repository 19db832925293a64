#include "tests/support/fake_cuda_machine.h"

#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

namespace tutti::test {

namespace {

constexpr int capture_mode_global = 0;

}  // namespace

thread_local std::vector<CUctx_st*> FakeMachine::contexts_of_thread;
thread_local int FakeMachine::capture_mode_of_thread = capture_mode_global;

FakeMachine& FakeMachine::the() {
  static FakeMachine& machine = *new FakeMachine;
  return machine;
}

FakeMachine::FakeMachine() {
  for (int i = 0; i < most_devices; ++i) contexts[i].device = i;
}

cuda::Outcome FakeMachine::enter(const char* function) {
  const std::lock_guard lock(mutex);
  const auto failure = failures.find(function);
  if (failure != failures.end() && --failure->second.calls_before == 0) {
    const cuda::Outcome error = failure->second.error;
    failures.erase(failure);
    return error;
  }
  if (broken != cuda::success) return broken;
  return initialized ? cuda::success : cuda::not_initialized;
}

cuda::Outcome FakeMachine::forbid_in_captures() {
  const std::lock_guard lock(mutex);
  cuda::Outcome result = cuda::success;
  for (const auto& [handle, stream] : streams) {
    if (stream->capture_status == cuda::capture_status_none) continue;
    const bool own = stream->capturer == std::this_thread::get_id();
    const bool hinders =
        own ? stream->capture_mode != cuda::capture_mode_relaxed
            : stream->capture_mode == capture_mode_global && capture_mode_of_thread == capture_mode_global;
    if (capture_mode_of_thread == cuda::capture_mode_relaxed || !hinders) continue;
    stream->capture_status = capture_status_invalidated;
    result = capture_unsupported;
  }
  return result;
}

CUctx_st* FakeMachine::current() { return contexts_of_thread.empty() ? nullptr : contexts_of_thread.back(); }

// The default stream has two handles: null, and CU_STREAM_LEGACY.
FakeStream* FakeMachine::find(cuda::StreamHandle handle) {
  if (std::bit_cast<std::uintptr_t>(handle) > 1) {
    const auto found = streams.find(handle);
    return found == streams.end() ? nullptr : found->second.get();
  }
  if (current() == nullptr) return nullptr;
  std::unique_ptr<FakeStream>& stream = default_streams[current()];
  if (stream == nullptr) stream = std::make_unique<FakeStream>(current());
  return stream.get();
}

CUctx_st* FakeMachine::context_of(cuda::StreamHandle handle) {
  const std::lock_guard lock(mutex);
  const FakeStream* const stream = find(handle);
  return stream == nullptr ? nullptr : stream->context;
}

void FakeMachine::add(FakeStream& stream, std::function<void()> work) {
  if (stream.capture_status != cuda::capture_status_none) return;
  ++stream.pieces;
  stream.work.add([&stream, work = std::move(work)] {
    work();
    --stream.pieces;
  });
}

void FakeMachine::await_room(cuda::StreamHandle handle) {
  const auto is_full = [&] {
    const std::lock_guard lock(mutex);
    const FakeStream* const stream = find(handle);
    const int room = room_of_streams;
    return stream != nullptr && room != 0 && stream->pieces >= room && broken == cuda::success;
  };
  if (!is_full()) return;
  ++waiting_for_room;
  while (is_full()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  --waiting_for_room;
}

cuda::Outcome FakeMachine::add(cuda::StreamHandle handle, std::function<void()> work) {
  await_room(handle);
  const std::lock_guard lock(mutex);
  FakeStream* const stream = find(handle);
  if (stream == nullptr) return invalid_handle;
  add(*stream, std::move(work));
  return cuda::success;
}

cuda::Outcome FakeMachine::synchronise(cuda::StreamHandle handle) {
  count_synchronisation();
  if (const cuda::Outcome forbidden = forbid_in_captures(); forbidden != cuda::success) return forbidden;
  const auto end = std::make_shared<ToyEvent>();
  if (const cuda::Outcome added = add(handle, [end] { end->happen(); }); added != cuda::success) return added;
  end->wait();
  return broken;
}

void FakeMachine::end_streams() {
  std::map<CUctx_st*, std::unique_ptr<FakeStream>> ended;
  {
    const std::lock_guard lock(mutex);
    ended.swap(default_streams);
  }
  ended.clear();
  while (broken != cuda::success && ending_streams != 0)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void FakeMachine::await_copies() const {
  while (holds_copies) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

cuda::Outcome FakeMachine::copy(cuda::Address to, cuda::Address from, std::size_t bytes) {
  await_copies();
  const std::shared_lock lock(copying);
  std::byte* const target = memory.view(to, bytes);
  const std::byte* const source = memory.view(from, bytes);
  if (target == nullptr || source == nullptr) return invalid_value;
  if (broken != cuda::success) return broken;
  const std::size_t half = bytes / 2;
  std::memcpy(target, source, half);
  if (copy_microseconds != 0) std::this_thread::sleep_for(std::chrono::microseconds(copy_microseconds));
  std::memcpy(target + half, source + half, bytes - half);
  ++copies;
  return cuda::success;
}

}  // namespace tutti::test
