// This Python module is for a torch that was built without CUDA, and gives it tensors on CUDA
// devices. The devices are those of the fake CUDA (tests/support/fake_cuda.h): a stream is a
// thread, and the host cannot access the devices' memory. The module registers the same parts as
// torch's build for CUDA: streams and events, an allocator, and a few kernels.
#include <atomic>
#include <bit>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include "tests/support/fake_cuda.h"

using tutti::cuda::Address;
using tutti::cuda::Context;
using tutti::cuda::EventHandle;
using tutti::cuda::Outcome;
using tutti::cuda::StreamHandle;

// The fake CUDA also has these functions of the driver.
extern "C" {
Outcome cuInit(unsigned flags);
Outcome cuDeviceGetCount(int* count);
Outcome cuDevicePrimaryCtxRetain(Context* context, int device);
Outcome cuCtxPushCurrent_v2(Context context);
Outcome cuCtxPopCurrent_v2(Context* context);
Outcome cuStreamCreate(StreamHandle* stream, unsigned flags);
Outcome cuStreamSynchronize(StreamHandle stream);
Outcome cuStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned flags);
Outcome cuEventCreate(EventHandle* event, unsigned flags);
Outcome cuEventDestroy_v2(EventHandle event);
Outcome cuEventRecord(EventHandle event, StreamHandle stream);
Outcome cuEventQuery(EventHandle event);
Outcome cuMemAllocAsync(Address* address, std::size_t bytes, StreamHandle stream);
Outcome cuMemFreeAsync(Address address, StreamHandle stream);
}

namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

constexpr std::size_t most_devices = 8;
constexpr int pool_size = 3;

void check(Outcome outcome, const char* what) {
  TORCH_CHECK(outcome == tutti::cuda::success, "the fake CUDA: ", what, ": error ", outcome);
}

// --- devices and streams ---

struct FakeDevice {
  Context context = nullptr;
  // The streams, indexed by id: first the default stream, then the pool, then all others.
  std::vector<StreamHandle> streams{nullptr};
  int last_of_pool = 0;
  c10::StreamId freeing = 0;  // this stream frees memory that was used outside the stream of its allocation
};

std::mutex devices_mutex;
FakeDevice devices[most_devices];
thread_local DeviceIndex current_device = 0;
thread_local c10::StreamId current_streams[most_devices] = {};

// A `Current` makes the context of a device current in the driver, as long as the object exists.
class Current {
 public:
  explicit Current(DeviceIndex device) { check(cuCtxPushCurrent_v2(devices[device].context), "no context"); }
  ~Current() {
    Context popped = nullptr;
    cuCtxPopCurrent_v2(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

StreamHandle handle_of(const Stream& stream) {
  const std::lock_guard lock(devices_mutex);
  return devices[stream.device_index()].streams.at(static_cast<std::size_t>(stream.id()));
}

Stream stream_of(DeviceIndex device, c10::StreamId id) {
  return Stream(Stream::UNSAFE, Device(at::kCUDA, device), id);
}

DeviceIndex index_of(Device device) { return device.has_index() ? device.index() : current_device; }

c10::StreamId add_stream(DeviceIndex device) {
  const Current current(device);
  StreamHandle made = nullptr;
  check(cuStreamCreate(&made, 1), "cuStreamCreate");
  const std::lock_guard lock(devices_mutex);
  devices[device].streams.push_back(made);
  return static_cast<c10::StreamId>(devices[device].streams.size() - 1);
}

// Gives this process `count` devices. Call it once, and only after the last fork.
void start(int count) {
  fake_cuda_reset(count);
  check(cuInit(0), "cuInit");
  for (DeviceIndex i = 0; i < count; ++i) {
    check(cuDevicePrimaryCtxRetain(&devices[i].context, i), "cuDevicePrimaryCtxRetain");
    for (int j = 0; j < pool_size; ++j) add_stream(i);
    devices[i].freeing = add_stream(i);
  }
}

// A `FakeGuard` answers torch's requests about streams and events.
class FakeGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return at::kCUDA; }
  Device exchangeDevice(Device device) const override {
    const Device before = getDevice();
    setDevice(device);
    return before;
  }
  Device getDevice() const override { return Device(at::kCUDA, current_device); }
  void setDevice(Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(Device device) const noexcept override {
    if (device.has_index()) current_device = device.index();
  }
  DeviceIndex deviceCount() const noexcept override {
    int count = 0;
    return cuDeviceGetCount(&count) == tutti::cuda::success ? static_cast<DeviceIndex>(count) : 0;
  }

  Stream getStream(Device device) const override {
    const DeviceIndex index = index_of(device);
    return stream_of(index, current_streams[index]);
  }
  Stream getDefaultStream(Device device) const override { return stream_of(device.index(), 0); }
  Stream getStreamFromGlobalPool(Device device, bool) const override {
    const std::lock_guard lock(devices_mutex);
    FakeDevice& fake = devices[device.index()];
    fake.last_of_pool = fake.last_of_pool % pool_size + 1;
    return stream_of(device.index(), fake.last_of_pool);
  }
  Stream getNewStream(Device device, int) const override {
    return stream_of(index_of(device), add_stream(index_of(device)));
  }
  Stream exchangeStream(Stream stream) const override {
    const Stream before = getStream(stream.device());
    current_streams[stream.device_index()] = stream.id();
    return before;
  }
  void* getStreamNativeHandle(const Stream stream) const override { return handle_of(stream); }
  bool queryStream(const Stream&) const override { return false; }
  void synchronizeStream(const Stream& stream) const override {
    const Current current(stream.device_index());
    check(cuStreamSynchronize(handle_of(stream)), "cuStreamSynchronize");
  }

  void record(void** event, const Stream& stream, DeviceIndex, c10::EventFlag) const override {
    const Current current(stream.device_index());
    auto handle = std::bit_cast<EventHandle>(*event);
    if (handle == nullptr) check(cuEventCreate(&handle, 2), "cuEventCreate");
    *event = handle;
    check(cuEventRecord(handle, handle_of(stream)), "cuEventRecord");
  }
  void block(void* event, const Stream& stream) const override {
    const Current current(stream.device_index());
    check(cuStreamWaitEvent(handle_of(stream), std::bit_cast<EventHandle>(event), 0), "cuStreamWaitEvent");
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || cuEventQuery(std::bit_cast<EventHandle>(event)) == tutti::cuda::success;
  }
  void synchronizeEvent(void* event) const override {
    while (!queryEvent(event)) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  void destroyEvent(void* event, DeviceIndex) const noexcept override {
    if (event != nullptr) cuEventDestroy_v2(std::bit_cast<EventHandle>(event));
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const Stream& stream) const override;
};

const FakeGuard& guard() {
  static const auto& made = *new FakeGuard;
  return made;
}

// `CUDAHooks` tell torch that it can use CUDA.
struct CUDAHooks final : at::CUDAHooksInterface {
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return deviceCount() != 0; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return guard().deviceCount(); }
  DeviceIndex getCurrentDevice() const override { return guard().getDevice().index(); }
};

// --- memory ---

// A `Block` is memory that torch has allocated. `release` behaves like torch's own allocator. It frees the
// memory after the work in the stream of the allocation, and after the work in all recorded streams. The
// stream of the allocation does not wait for the recorded streams. If memory is freed too early, the next
// copy from or to it crashes.
struct Block {
  Stream owner;
  Address address = 0;
  std::set<c10::StreamId> users = {};

  static void release(void* self) {
    const std::unique_ptr<Block> block(static_cast<Block*>(self));
    const DeviceIndex device = block->owner.device_index();
    const Current current(device);
    std::set<c10::StreamId> users = std::move(block->users);
    const Stream freeing = users.empty() ? block->owner : stream_of(device, devices[device].freeing);
    if (!users.empty()) users.insert(block->owner.id());
    for (const c10::StreamId user : users) {
      void* event = nullptr;
      guard().record(&event, stream_of(device, user), 0, c10::EventFlag::PYTORCH_DEFAULT);
      guard().block(event, freeing);
      guard().destroyEvent(event, 0);
    }
    check(cuMemFreeAsync(block->address, handle_of(freeing)), "cuMemFreeAsync");
  }
};

void FakeGuard::recordDataPtrOnStream(const c10::DataPtr& data, const Stream& stream) const {
  if (auto* const block = static_cast<Block*>(data.get_context())) block->users.insert(stream.id());
}

class FakeAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const Stream owner = guard().getStream(guard().getDevice());
    if (bytes == 0) return {nullptr, owner.device()};
    const Current current(owner.device_index());
    auto block = std::make_unique<Block>(Block{owner});
    check(cuMemAllocAsync(&block->address, bytes, handle_of(owner)), "cuMemAllocAsync");
    void* const address = std::bit_cast<void*>(block->address);
    return {address, block.release(), &Block::release, owner.device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override { TORCH_CHECK(false, "not needed"); }
};

FakeAllocator allocator;

// --- kernels ---

// Makes the current stream of a device call a function.
void launch(Device device, std::function<void()> kernel) {
  const Current current(device.index());
  const auto call = [](void* kernel) {
    const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(kernel));
    (*owned)();
  };
  check(cuLaunchHostFunc(handle_of(guard().getStream(device)), call,
                         new std::function<void()>(std::move(kernel))),
        "cuLaunchHostFunc");
}

// Returns a host tensor through which a stream can access the elements of `tensor`.
at::Tensor seen_by_stream(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return tensor;
  const auto base = std::bit_cast<Address>(tensor.storage().data_ptr().get());
  auto* const memory = static_cast<char*>(fake_cuda_host_address(base, tensor.storage().nbytes()));
  TORCH_CHECK(memory != nullptr, "the fake CUDA has no such memory");
  return at::from_blob(memory + tensor.storage_offset() * tensor.itemsize(), tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU));
}

at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool) {
  if (to.numel() == 0) return to;
  const Device device = to.is_cuda() ? to.device() : from.device();
  launch(device, [a = seen_by_stream(to), b = seen_by_stream(from)] { a.copy_(b); });
  if (to.is_cpu() || from.is_cpu()) guard().synchronizeStream(guard().getStream(device));
  return to;
}

at::Tensor& fill(at::Tensor& tensor, const at::Scalar& value) {
  if (tensor.numel() != 0) launch(tensor.device(), [a = seen_by_stream(tensor), value] { a.fill_(value); });
  return tensor;
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard on(device);
  return at::detail::empty_strided_generic(
      size, stride, &allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA), type.value_or(at::kFloat));
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard on(device);
  return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   type.value_or(at::kFloat), format);
}

at::Scalar item(const at::Tensor& tensor) { return tensor.cpu().item(); }

at::Tensor view(const at::Tensor& tensor, at::IntArrayRef size) { return at::native::view(tensor, size); }

at::Tensor as_strided(const at::Tensor& tensor, at::IntArrayRef size, at::IntArrayRef stride,
                      std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(tensor, size, stride, offset);
}

// Gives a storage new memory with undefined content.
void replace(c10::StorageImpl& storage, std::size_t bytes) {
  const c10::DeviceGuard on(storage.device());
  storage.set_data_ptr_noswap(allocator.allocate(bytes));
  storage.set_nbytes(bytes);
}

// Copies a result of the host to the device. The tensor on the device may have no elements yet.
at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  at::Tensor there = to;
  if (there.sizes() != from.sizes()) {
    TORCH_CHECK(there.numel() == 0, "the fake CUDA cannot resize a tensor with elements");
    replace(*there.storage().unsafeGetStorageImpl(), from.nbytes());
    there.unsafeGetTensorImpl()->set_sizes_contiguous(from.sizes());
  }
  return there.copy_(from);
}

// Carries out an operator that has no kernel above: copies the tensors to the host, and copies the results
// back.
void compute_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&compute_on_host>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("copy_", copy);
  library.impl("fill_.Scalar", fill);
  library.impl("view", view);
  library.impl("as_strided", as_strided);
  library.impl("view_as_real", at::native::view_as_real);
  library.impl("_local_scalar_dense", item);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
}

const c10::impl::DeviceGuardImplRegistrar registrar(at::kCUDA, &guard());

// torch made its hooks when it was imported, and keeps their address. So the fake's hooks overwrite
// torch's hooks in memory.
const at::CUDAHooksInterface& hooks = []() -> const at::CUDAHooksInterface& {
  static_assert(sizeof(CUDAHooks) == sizeof(at::CUDAHooksInterface));
  return *new (const_cast<at::CUDAHooksInterface*>(&at::detail::getCUDAHooks())) CUDAHooks;
}();

// DDP measures its steps with a `FakeTimer`, which knows only the host's times.
struct FakeTimer final : c10d::Timer {
  explicit FakeTimer(Device) {}
  std::optional<std::int64_t> measureDifference(Event start, Event end) override {
    const std::optional<std::int64_t> from = getTimestamp(start);
    const std::optional<std::int64_t> to = getTimestamp(end);
    return from && to ? std::optional(*to - *from) : std::nullopt;
  }
};

const c10d::RegistererTimerRegistry timers(at::kCUDA, c10d::TimerRegistry(),
                                           c10d::RegistererTimerRegistry::DefaultCreator<FakeTimer>);

// --- what tests call ---

at::Tensor to_device(const at::Tensor& tensor, int device) {
  const at::Tensor made =
      at::empty_strided(tensor.sizes(), tensor.strides(),
                        tensor.options().device(Device(at::kCUDA, static_cast<DeviceIndex>(device))));
  made.copy_(tensor);
  return made;
}

std::mutex holds_mutex;
std::set<int> holds;  // the holds that have not ended
int last_hold = 0;

bool is_held(int number) {
  const std::lock_guard lock(holds_mutex);
  return holds.contains(number);
}

// Makes the current stream of a device wait until the hold is released. Returns the number of the hold.
int hold(int device) {
  const std::lock_guard lock(holds_mutex);
  const int number = ++last_hold;
  holds.insert(number);
  launch(Device(at::kCUDA, static_cast<DeviceIndex>(device)), [number] {
    while (is_held(number)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  return number;
}

// Ends one hold, or all holds if no number is given.
void release(std::optional<int> number) {
  const std::lock_guard lock(holds_mutex);
  if (number) {
    holds.erase(*number);
  } else {
    holds.clear();
  }
}

// Begins to capture a device's current stream, which must not be the default stream. `end_capture` ends
// the capture and drops its graph.
void begin_capture(int device) {
  const Stream stream = guard().getStream(Device(at::kCUDA, static_cast<DeviceIndex>(device)));
  check(cuStreamBeginCapture_v2(handle_of(stream), 0), "cuStreamBeginCapture");
}

void end_capture(int device) {
  const Stream stream = guard().getStream(Device(at::kCUDA, static_cast<DeviceIndex>(device)));
  CUgraph_st* graph = nullptr;
  check(cuStreamEndCapture(handle_of(stream), &graph), "cuStreamEndCapture");
  check(cuGraphDestroy(graph), "cuGraphDestroy");
}

// Returns the present content of the tensor's memory, without waiting for streams.
at::Tensor peek(const at::Tensor& tensor) { return seen_by_stream(tensor).clone(); }

c10::StreamId use_stream(int device, c10::StreamId id) {
  return guard().exchangeStream(stream_of(static_cast<DeviceIndex>(device), id)).id();
}

// Returns the streams that torch knows as users of the tensor's memory.
std::vector<c10::StreamId> users(const at::Tensor& tensor) {
  const auto* const block = static_cast<const Block*>(tensor.storage().data_ptr().get_context());
  return {block->users.begin(), block->users.end()};
}

void synchronize(int device) {
  guard().synchronizeStream(guard().getStream(Device(at::kCUDA, static_cast<DeviceIndex>(device))));
}

}  // namespace

PYBIND11_MODULE(fake_device, module) {
  namespace py = pybind11;
  using Released = py::call_guard<py::gil_scoped_release>;
  module.def("start", &start, py::arg("devices"), Released());
  module.def("to_device", &to_device, py::arg("tensor"), py::arg("device"), Released());
  module.def("hold", &hold, py::arg("device"), Released());
  module.def("release", &release, py::arg("hold") = py::none());
  module.def("begin_capture", &begin_capture, py::arg("device"));
  module.def("end_capture", &end_capture, py::arg("device"));
  module.def("peek", &peek, py::arg("tensor"), Released());
  module.def("replace_storage", [](py::handle storage, std::size_t bytes) {
    replace(*torch::createStorage(storage.ptr()).unsafeGetStorageImpl(), bytes);
  });
  module.def("set_device", [](int device) { current_device = static_cast<DeviceIndex>(device); });
  module.def("new_stream", [](int device) { return add_stream(static_cast<DeviceIndex>(device)); });
  module.def("use_stream", &use_stream, py::arg("device"), py::arg("stream"));
  module.def("users", &users, py::arg("tensor"));
  module.def("pool", [] {
    std::vector<c10::StreamId> pool(pool_size);
    std::iota(pool.begin(), pool.end(), 1);
    return pool;
  });
  module.def("synchronize", &synchronize, py::arg("device"), Released());
  module.def("device_bytes", [] { return fake_cuda_counts().device_bytes; });
}
