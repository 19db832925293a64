#include "tests/support/fake_cuda.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>
#include <utility>

#include "tests/support/fake_cuda_machine.h"

using tutti::cuda::Address;
using tutti::cuda::Context;
using tutti::cuda::Ordinal;
using tutti::cuda::Outcome;
using tutti::cuda::StreamHandle;
using tutti::cuda::success;
using tutti::test::FakeMachine;

namespace {

FakeMachine& machine() { return FakeMachine::the(); }

struct KnownError {
  Outcome error;
  const char* name;
  const char* words;
};
constexpr KnownError known_errors[] = {
    {success, "CUDA_SUCCESS", "no error"},
    {tutti::test::invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {tutti::test::out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {tutti::cuda::not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {tutti::test::no_device, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {tutti::test::invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {tutti::test::invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {tutti::test::invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {tutti::cuda::not_ready, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {tutti::test::capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {tutti::test::capture_invalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {tutti::test::captured_event, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
};

Outcome find_error(Outcome error, const char* KnownError::*member, const char** text) {
  const auto* const found = std::ranges::find(known_errors, error, &KnownError::error);
  *text = found == std::end(known_errors) ? nullptr : found->*member;
  return *text == nullptr ? tutti::test::invalid_value : success;
}

}  // namespace

extern "C" {

// --- controls ---

FakeCudaCounts fake_cuda_counts() {
  FakeMachine& m = machine();
  const std::lock_guard lock(m.mutex);
  FakeCudaCounts counts{};
  counts.contexts = static_cast<int>(std::ranges::count_if(m.contexts, [](auto& c) { return c.users != 0; }));
  counts.streams = static_cast<int>(m.streams.size());
  counts.events = static_cast<int>(m.events.size());
  counts.pinned_bytes = m.memory.pinned_bytes();
  counts.device_bytes = m.memory.device_bytes();
  counts.copies = m.copies;
  counts.host_synchronisations = m.synchronisations;
  counts.waiting_for_room = m.waiting_for_room;
  return counts;
}

void fake_cuda_reset(int devices) {
  FakeMachine& m = machine();
  m.holds_copies = false;
  m.room_of_streams = 0;
  m.has_failed_push = false;
  m.end_streams();
  const std::lock_guard lock(m.mutex);
  m.initialized = false;
  m.devices = devices;
  m.capability = 90;
  m.has_instances = false;
  m.failures.clear();
  m.broken = success;
  m.copy_microseconds = 0;
  m.copies = m.synchronisations = 0;
}

bool fake_cuda_is_initialized() {
  const std::lock_guard lock(machine().mutex);
  return machine().initialized;
}

void fake_cuda_set_capability(int capability) {
  const std::lock_guard lock(machine().mutex);
  machine().capability = capability;
}

void fake_cuda_make_instances() {
  const std::lock_guard lock(machine().mutex);
  machine().has_instances = true;
}

void fake_cuda_fail(const char* function, int n, Outcome error) {
  const std::lock_guard lock(machine().mutex);
  machine().failures[function] = {n, error};
}

void fake_cuda_break(Outcome error) {
  const std::lock_guard lock(machine().copying);
  machine().broken = error;
}

void fake_cuda_slow_copies(unsigned microseconds) { machine().copy_microseconds = microseconds; }

void fake_cuda_hold_copies(bool hold) { machine().holds_copies = hold; }

void fake_cuda_limit_streams(int pieces) { machine().room_of_streams = pieces; }

void* fake_cuda_host_address(Address address, std::size_t bytes) {
  return machine().memory.is_of_device(address) ? machine().memory.view(address, bytes) : nullptr;
}

// --- the process, devices and contexts ---

Outcome cuInit(unsigned) {
  const std::lock_guard lock(machine().mutex);
  if (machine().devices == 0) return tutti::test::no_device;
  machine().initialized = true;
  return success;
}

Outcome cuDriverGetVersion(int* version) {
  *version = 13000;
  return success;
}

Outcome cuGetErrorName(Outcome error, const char** text) {
  return find_error(error, &KnownError::name, text);
}

Outcome cuGetErrorString(Outcome error, const char** text) {
  return find_error(error, &KnownError::words, text);
}

Outcome cuDeviceGetCount(int* count) {
  FAKE_CUDA_ENTER();
  const std::lock_guard lock(machine().mutex);
  *count = machine().devices;
  return success;
}

Outcome cuDeviceGet(Ordinal* device, int number) {
  FAKE_CUDA_ENTER();
  const std::lock_guard lock(machine().mutex);
  FAKE_CUDA_REQUIRE(number >= 0 && number < machine().devices, invalid_device);
  *device = number;
  return success;
}

Outcome cuDeviceGetPCIBusId(char* id, int bytes, Ordinal device) {
  FAKE_CUDA_ENTER();
  const std::lock_guard lock(machine().mutex);
  const int bus = machine().has_instances ? 0 : device;
  const int needed =
      std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02x:00.0", static_cast<unsigned>(bus));
  return needed < bytes ? success : tutti::test::invalid_value;
}

Outcome cuDeviceGetAttribute(int* value, int attribute, Ordinal) {
  FAKE_CUDA_ENTER();
  const bool major = attribute == tutti::cuda::attribute_capability_major;
  FAKE_CUDA_REQUIRE(major || attribute == tutti::cuda::attribute_capability_minor, invalid_value);
  const std::lock_guard lock(machine().mutex);
  *value = major ? machine().capability / 10 : machine().capability % 10;
  return success;
}

Outcome cuDevicePrimaryCtxRetain(Context* context, Ordinal device) {
  FAKE_CUDA_ENTER();
  const std::lock_guard lock(machine().mutex);
  *context = &machine().contexts[device];
  ++(*context)->users;
  return success;
}

Outcome cuDevicePrimaryCtxRelease_v2(Ordinal device) {
  const std::lock_guard lock(machine().mutex);
  FAKE_CUDA_REQUIRE(machine().contexts[device].users != 0, invalid_context);
  --machine().contexts[device].users;
  return success;
}

Outcome cuCtxCreate_v2(Context* context, unsigned, Ordinal device) {
  FAKE_CUDA_ENTER();
  const std::lock_guard lock(machine().mutex);
  FAKE_CUDA_REQUIRE(device >= 0 && device < machine().devices, invalid_device);
  *context = &machine().other_contexts.emplace_back();
  (*context)->device = device;
  FakeMachine::contexts_of_thread.push_back(*context);
  return success;
}

Outcome cuCtxDestroy_v2(Context context) {
  const std::lock_guard lock(machine().mutex);
  if (FakeMachine::current() == context) FakeMachine::contexts_of_thread.pop_back();
  const auto erased =
      std::erase_if(machine().other_contexts, [context](const CUctx_st& each) { return &each == context; });
  return erased == 1 ? success : tutti::test::invalid_context;
}

Outcome cuCtxPushCurrent_v2(Context context) {
  const Outcome entered = machine().enter(__func__);
  if (entered == success) {
    FakeMachine::contexts_of_thread.push_back(context);
  } else {
    machine().has_failed_push = true;
  }
  return entered;
}

Outcome cuCtxPopCurrent_v2(Context* context) {
  FAKE_CUDA_REQUIRE(FakeMachine::current() != nullptr, invalid_context);
  *context = FakeMachine::current();
  FakeMachine::contexts_of_thread.pop_back();
  return success;
}

Outcome cuCtxGetDevice(Ordinal* device) {
  FAKE_CUDA_ENTER();
  FAKE_CUDA_REQUIRE(FakeMachine::current() != nullptr, invalid_context);
  *device = FakeMachine::current()->device;
  return success;
}

// --- memory ---

Outcome cuMemAlloc_v2(Address* address, std::size_t bytes) {
  FAKE_CUDA_ENTER();
  FAKE_CUDA_FORBID_IN_CAPTURES();
  FAKE_CUDA_REQUIRE(FakeMachine::current() != nullptr, invalid_context);
  FAKE_CUDA_REQUIRE(bytes != 0, invalid_value);
  *address = machine().memory.allocate(bytes, FakeMachine::current()->device);
  return *address == 0 ? tutti::test::out_of_memory : success;
}

Outcome cuMemFree_v2(Address address) {
  machine().count_synchronisation();
  machine().await_copies();
  return machine().memory.free(address) ? success : tutti::test::invalid_value;
}

Outcome cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  FAKE_CUDA_ENTER();
  FAKE_CUDA_FORBID_IN_CAPTURES();
  FAKE_CUDA_REQUIRE(FakeMachine::current() != nullptr, invalid_context);
  *memory = machine().memory.pin(bytes);
  return *memory == nullptr ? tutti::test::out_of_memory : success;
}

Outcome cuMemFreeHost(void* memory) {
  machine().count_synchronisation();
  return machine().memory.unpin(memory) ? success : tutti::test::invalid_value;
}

Outcome cuMemHostGetDevicePointer_v2(Address* address, void* memory, unsigned) {
  FAKE_CUDA_ENTER();
  *address = std::bit_cast<Address>(memory);
  FAKE_CUDA_REQUIRE(machine().memory.is_pinned(*address), invalid_value);
  return success;
}

// A copy from or to host memory that is not pinned may make the calling thread wait.
Outcome cuMemcpyAsync(Address to, Address from, std::size_t bytes, StreamHandle stream) {
  FAKE_CUDA_ENTER();
  tutti::test::FakeMemory& memory = machine().memory;
  FAKE_CUDA_REQUIRE(memory.view(to, bytes) != nullptr && memory.view(from, bytes) != nullptr, invalid_value);
  for (const Address end : {to, from}) {
    if (!memory.is_of_device(end) && !memory.is_pinned(end)) machine().count_synchronisation();
  }
  return machine().add(stream, [to, from, bytes] { machine().copy(to, from, bytes); });
}

Outcome cuMemcpy(Address to, Address from, std::size_t bytes) {
  FAKE_CUDA_ENTER();
  if (const Outcome waited = machine().synchronise(nullptr); waited != success) return waited;
  return machine().copy(to, from, bytes);
}
}
