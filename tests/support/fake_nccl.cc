#include "tests/support/fake_nccl.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "tests/support/fake_cuda.h"
#include "tests/support/fake_nccl_work.h"

using tutti::cuda::StreamHandle;
using tutti::nccl::Comm;
using tutti::nccl::in_progress;
using tutti::nccl::Op;
using tutti::nccl::Outcome;
using tutti::nccl::success;
using tutti::nccl::Type;
using tutti::nccl::UniqueId;
using tutti::test::FakeWork;

extern "C" {
Outcome ncclGroupStart();
Outcome ncclGroupEnd();
}

namespace {

constexpr Outcome unhandled_cuda_error = 1;
constexpr Outcome invalid_argument = 4;
constexpr Outcome invalid_usage = 5;
constexpr Op first_operation = 5;  // built-in operations have smaller numbers

// `Group` holds the calls that the calling thread has made since its outermost open ncclGroupStart.
struct Group {
  int depth = 0;
  Outcome error = success;
  struct Part {
    StreamHandle stream = nullptr;
    std::shared_ptr<FakeWork> work;
  };
  std::map<Comm, Part> parts;
};
thread_local Group group;

// Returns success if the calling thread may use the communicator.
Outcome check(ncclComm& comm) {
  int device = -1;
  const bool current = cuCtxGetDevice(&device) == tutti::cuda::success && device == comm.device;
  const std::lock_guard lock(comm.mutex);
  if (!comm.initialized || comm.finalized || comm.waiting != nullptr || !current) return invalid_usage;
  return comm.error;
}

bool applies(const FakeNcclFault& fault, const ncclComm& comm, int call) {
  return fault.rank == comm.rank && fault.call == call;
}

std::byte* host(const void* address, std::size_t bytes) {
  return static_cast<std::byte*>(fake_cuda_host_address(std::bit_cast<std::uint64_t>(address), bytes));
}

// Adds a call to the calling thread's group. `describe` adds the steps of the call to the
// communicator's work. If a buffer is not memory of a device, `describe` returns false, and the
// call fails.
template <typename Describe>
Outcome add(Comm comm, StreamHandle stream, Describe describe) {
  ncclGroupStart();
  Outcome outcome = check(*comm);
  if (outcome == success) {
    const std::lock_guard lock(comm->mutex);
    const int call = comm->calls++;
    ++fake_nccl().calls;
    Group::Part& part = group.parts[comm];
    if (part.work == nullptr) part = {stream, std::make_shared<FakeWork>(*comm)};
    if (applies(fake_nccl().refusal, *comm, call)) outcome = fake_nccl().refusal.outcome;
    if (applies(fake_nccl().failure, *comm, call)) comm->error = fake_nccl().failure.outcome;
    if (applies(fake_nccl().hang, *comm, call) || comm->error != success) part.work->hang();
    if (outcome == success && !describe(*part.work)) outcome = invalid_argument;
  }
  if (outcome != success) group.error = outcome;
  const Outcome ended = ncclGroupEnd();
  return outcome == success && ended != in_progress ? ended : outcome;
}

FakeWork::Reduction reduction(const ncclComm& comm, Type type, Op op) {
  if (op < first_operation) return {type, op, {}};
  return {type, tutti::nccl::sum, comm.operations[static_cast<std::size_t>(op - first_operation)].factor};
}

// Puts the work into the stream. The communicator gets an error if CUDA refuses the work. The
// communicator's `mutex` must be held.
void launch(Comm comm, StreamHandle stream, const std::shared_ptr<FakeWork>& work) {
  std::erase_if(comm->launched, [](const std::shared_ptr<FakeWork>& each) { return each->over(); });
  comm->launched.push_back(work);
  if (fake_nccl().takes_turns) work->take_turn();
  const auto run = [](void* data) { static_cast<FakeWork*>(data)->run(); };
  if (cuLaunchHostFunc(stream, run, work.get()) == tutti::cuda::success) return;
  comm->launched.pop_back();
  comm->error = unhandled_cuda_error;
}

bool device_works() {
  int device = -1;
  return cuCtxGetDevice(&device) == tutti::cuda::success;
}

// Returns whether a stream may still do work of the communicator. A device begins no more work
// after an error.
bool is_busy(ncclComm& comm) {
  const bool works = device_works();
  const std::lock_guard lock(comm.mutex);
  return std::ranges::any_of(comm.launched,
                             [&](const auto& each) { return !each->over() && (works || each->begun()); });
}

void end(Comm comm) {
  for (const ncclComm::Operation& operation : comm->operations) fake_nccl().operations -= operation.exists;
  fake_nccl().registrations -= static_cast<int>(comm->registered.size());
  --fake_nccl().communicators;
  if (device_works()) {
    delete comm;
  } else {
    // A stream may have looked for the error just before it happened, and still begin some work. So the
    // communicator is never destroyed.
    static std::mutex mutex;
    static auto& kept = *new std::vector<Comm>;
    const std::lock_guard lock(mutex);
    kept.push_back(comm);
  }
}

}  // namespace

FakeNccl& fake_nccl() {
  static FakeNccl controls;
  return controls;
}

void fake_nccl_reset() {
  std::destroy_at(&fake_nccl());
  std::construct_at(&fake_nccl());
}

extern "C" {

Outcome ncclGetVersion(int* version) {
  *version = fake_nccl().version;
  return success;
}

const char* ncclGetErrorString(Outcome outcome) {
  constexpr const char* words[] = {"no error",
                                   "unhandled cuda error",
                                   "unhandled system error",
                                   "internal error",
                                   "invalid argument",
                                   "invalid usage",
                                   "remote process exited or there was a network error",
                                   "NCCL operation in progress"};
  return outcome >= 0 && outcome <= in_progress ? words[outcome] : "unknown result code";
}

const char* ncclGetLastError(Comm) { return ""; }

Outcome ncclGetUniqueId(UniqueId* id) {
  static std::atomic<int> last{0};
  std::snprintf(id->bytes, sizeof id->bytes, "/tutti_fake_nccl_%d_%d", static_cast<int>(getpid()), ++last);
  return success;
}

Outcome ncclCommInitRankConfig(Comm* comm, int size, UniqueId id, int rank, tutti::nccl::Config* config) {
  int device = -1;
  const bool blocking = config->blocking == 1;
  if (config->magic != 0xcafebeef || (config->blocking != 0 && !blocking)) return invalid_argument;
  if (cuCtxGetDevice(&device) != tutti::cuda::success) return invalid_usage;
  auto made = std::make_unique<ncclComm>(id.bytes, rank, size, device);
  if (!made->channels.usable()) return invalid_usage;
  made->blocking = blocking;
  made->queries_left = fake_nccl().init_queries;
  while (blocking && !made->initialized) {
    made->initialized = made->channels.complete();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  ++fake_nccl().communicators;
  ++fake_nccl().initialized;
  *comm = made.release();
  return blocking ? success : in_progress;
}

Outcome ncclCommGetAsyncError(Comm comm, Outcome* error) {
  const std::lock_guard lock(comm->mutex);
  *error = in_progress;
  if (comm->queries_left-- > 0) return success;
  comm->queries_left = 0;
  if (!comm->initialized) comm->initialized = comm->channels.complete();
  if (!comm->initialized) return success;
  if (comm->waiting != nullptr) launch(comm, comm->waiting_for, std::exchange(comm->waiting, nullptr));
  *error = comm->finalized && !comm->channels.all_leave() ? in_progress : comm->error;
  return success;
}

// The communicator stays in progress until all ranks have called this function.
Outcome ncclCommFinalize(Comm comm) {
  if (const Outcome usable = check(*comm); usable != success) return usable;
  const std::lock_guard lock(comm->mutex);
  comm->finalized = true;
  comm->channels.leave();
  return in_progress;
}

Outcome ncclCommDestroy(Comm comm) {
  if (!comm->finalized || is_busy(*comm)) return invalid_usage;
  end(comm);
  return success;
}

Outcome ncclCommAbort(Comm comm) {
  ++fake_nccl().aborting;
  comm->aborted = true;
  while (fake_nccl().abort_blocks || is_busy(*comm))
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  end(comm);
  --fake_nccl().aborting;
  return success;
}

Outcome ncclGroupStart() {
  ++group.depth;
  return success;
}

Outcome ncclGroupEnd() {
  if (group.depth == 0) return invalid_usage;
  if (--group.depth > 0) return success;
  const Group ended = std::exchange(group, Group());
  if (ended.error != success) return ended.error;
  Outcome error = success;
  bool progresses = false;
  for (const auto& [comm, part] : ended.parts) {
    const std::lock_guard lock(comm->mutex);
    comm->queries_left = comm->blocking ? 0 : fake_nccl().launch_queries.load();
    if (comm->queries_left == 0) {
      const Outcome before = comm->error;
      launch(comm, part.stream, part.work);
      if (before == success && comm->error != success) error = comm->error;
      continue;
    }
    comm->waiting = part.work;
    comm->waiting_for = part.stream;
    progresses = true;
  }
  if (error != success) return error;
  return progresses ? in_progress : success;
}

Outcome ncclAllReduce(const void* in, void* out, std::size_t count, Type type, Op op, Comm comm,
                      StreamHandle stream) {
  return add(comm, stream, [&](FakeWork& work) {
    const std::size_t bytes = count * size_of(tutti::test::type_of(type));
    std::byte* const from = host(in, bytes);
    std::byte* const to = host(out, bytes);
    for (int root = 0; root < comm->size; ++root)
      work.reduce(from, to, count, reduction(*comm, type, op), root);
    return from != nullptr && to != nullptr;
  });
}

Outcome ncclReduce(const void* in, void* out, std::size_t count, Type type, Op op, int root, Comm comm,
                   StreamHandle stream) {
  return add(comm, stream, [&](FakeWork& work) {
    const std::size_t bytes = count * size_of(tutti::test::type_of(type));
    std::byte* const from = host(in, bytes);
    std::byte* const to = comm->rank == root ? host(out, bytes) : nullptr;
    work.reduce(from, to, count, reduction(*comm, type, op), root);
    return from != nullptr && (comm->rank != root || to != nullptr);
  });
}

Outcome ncclReduceScatter(const void* in, void* out, std::size_t out_count, Type type, Op op, Comm comm,
                          StreamHandle stream) {
  return add(comm, stream, [&](FakeWork& work) {
    const std::size_t bytes = out_count * size_of(tutti::test::type_of(type));
    std::byte* const from = host(in, bytes * static_cast<std::size_t>(comm->size));
    std::byte* const to = host(out, bytes);
    for (int root = 0; root < comm->size; ++root) {
      const std::size_t offset = bytes * static_cast<std::size_t>(root);
      work.reduce(from + offset, to, out_count, reduction(*comm, type, op), root);
    }
    return from != nullptr && to != nullptr;
  });
}

Outcome ncclBroadcast(const void* in, void* out, std::size_t count, Type type, int root, Comm comm,
                      StreamHandle stream) {
  return add(comm, stream, [&](FakeWork& work) {
    const std::size_t bytes = count * size_of(tutti::test::type_of(type));
    std::byte* const from = comm->rank == root ? host(in, bytes) : nullptr;
    std::byte* const to = host(out, bytes);
    work.copy_to_all(from, to, bytes, root);
    return to != nullptr && (comm->rank != root || from != nullptr);
  });
}

Outcome ncclAllGather(const void* in, void* out, std::size_t in_count, Type type, Comm comm,
                      StreamHandle stream) {
  return add(comm, stream, [&](FakeWork& work) {
    const std::size_t bytes = in_count * size_of(tutti::test::type_of(type));
    std::byte* const from = host(in, bytes);
    std::byte* const to = host(out, bytes * static_cast<std::size_t>(comm->size));
    for (int root = 0; root < comm->size; ++root)
      work.copy_to_all(from, to + bytes * static_cast<std::size_t>(root), bytes, root);
    return from != nullptr && to != nullptr;
  });
}

Outcome ncclSend(const void* in, std::size_t count, Type type, int peer, Comm comm, StreamHandle stream) {
  return add(comm, stream, [&](FakeWork& work) {
    const std::size_t bytes = count * size_of(tutti::test::type_of(type));
    std::byte* const from = host(in, bytes);
    work.send(from, bytes, peer, static_cast<std::uint64_t>(type));
    return from != nullptr;
  });
}

Outcome ncclRecv(void* out, std::size_t count, Type type, int peer, Comm comm, StreamHandle stream) {
  return add(comm, stream, [&](FakeWork& work) {
    const std::size_t bytes = count * size_of(tutti::test::type_of(type));
    std::byte* const to = host(out, bytes);
    work.receive(to, bytes, peer, static_cast<std::uint64_t>(type));
    return to != nullptr;
  });
}

Outcome ncclRedOpCreatePreMulSum(Op* op, void* factor, Type type, int residence, Comm comm) {
  if (residence != tutti::nccl::scalar_host_immediate) return invalid_argument;
  if (const Outcome usable = check(*comm); usable != success) return usable;
  const std::lock_guard lock(comm->mutex);
  const auto* const first = static_cast<const std::byte*>(factor);
  comm->operations.push_back({true, {first, first + size_of(tutti::test::type_of(type))}});
  ++fake_nccl().operations;
  *op = first_operation + static_cast<int>(comm->operations.size()) - 1;
  return success;
}

Outcome ncclRedOpDestroy(Op op, Comm comm) {
  if (const Outcome usable = check(*comm); usable != success) return usable;
  const std::lock_guard lock(comm->mutex);
  const auto index = static_cast<std::size_t>(op - first_operation);
  if (index >= comm->operations.size() || !comm->operations[index].exists) return invalid_argument;
  comm->operations[index].exists = false;
  --fake_nccl().operations;
  return success;
}

Outcome ncclCommRegister(Comm comm, void* memory, std::size_t bytes, void** handle) {
  if (const Outcome usable = check(*comm); usable != success) return usable;
  auto* const first = static_cast<std::byte*>(memory);
  if (host(memory, bytes) == nullptr) return invalid_argument;
  int device = -1;
  cuPointerGetAttribute(&device, tutti::cuda::attribute_device_ordinal, std::bit_cast<std::uint64_t>(memory));
  if (device != comm->device) ++fake_nccl().foreign_registrations;
  const std::lock_guard lock(comm->mutex);
  const auto overlaps = [&](const auto& known) {
    return known.first < first + bytes && first < known.first + known.second;
  };
  if (std::ranges::any_of(comm->registered, overlaps)) return invalid_usage;
  comm->registered.emplace(first, bytes);
  ++fake_nccl().registrations;
  *handle = memory;
  return success;
}

Outcome ncclMemAlloc(void** memory, std::size_t bytes) {
  tutti::cuda::Address address = 0;
  if (fake_nccl().lacks_memory || cuMemAlloc_v2(&address, bytes) != tutti::cuda::success)
    return unhandled_cuda_error;
  ++fake_nccl().memories;
  *memory = std::bit_cast<void*>(address);
  return success;
}

Outcome ncclMemFree(void* memory) {
  if (cuMemFree_v2(std::bit_cast<tutti::cuda::Address>(memory)) != tutti::cuda::success)
    return unhandled_cuda_error;
  --fake_nccl().memories;
  return success;
}

Outcome ncclCommDeregister(Comm comm, void* handle) {
  if (const Outcome usable = check(*comm); usable != success) return usable;
  const std::lock_guard lock(comm->mutex);
  if (comm->registered.erase(static_cast<std::byte*>(handle)) == 0) return invalid_argument;
  --fake_nccl().registrations;
  return success;
}

}  // extern "C"
