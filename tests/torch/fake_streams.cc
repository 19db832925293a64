#include "tests/torch/fake_streams.h"

#include <bit>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include "tests/torch/fake_memory.h"

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
}

namespace fake_device {
namespace {

constexpr std::size_t most_devices = 8;

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

DeviceIndex index_of(Device device) { return device.has_index() ? device.index() : current_device; }

}  // namespace

void check(Outcome outcome, const char* what) {
  TORCH_CHECK(outcome == tutti::cuda::success, "the fake CUDA: ", what, ": error ", outcome);
}

Current::Current(DeviceIndex device) { check(cuCtxPushCurrent_v2(devices[device].context), "no context"); }

Current::~Current() {
  Context popped = nullptr;
  cuCtxPopCurrent_v2(&popped);
}

StreamHandle handle_of(const Stream& stream) {
  const std::lock_guard lock(devices_mutex);
  return devices[stream.device_index()].streams.at(static_cast<std::size_t>(stream.id()));
}

Stream stream_of(DeviceIndex device, c10::StreamId id) {
  return Stream(Stream::UNSAFE, Device(at::kCUDA, device), id);
}

Stream current_stream(Device device) { return guard().getStream(device); }

Stream freeing_stream(DeviceIndex device) { return stream_of(device, devices[device].freeing); }

c10::StreamId add_stream(DeviceIndex device) {
  const Current current(device);
  StreamHandle made = nullptr;
  check(cuStreamCreate(&made, 1), "cuStreamCreate");
  const std::lock_guard lock(devices_mutex);
  devices[device].streams.push_back(made);
  return static_cast<c10::StreamId>(devices[device].streams.size() - 1);
}

void start(int count) {
  fake_cuda_reset(count);
  check(cuInit(0), "cuInit");
  for (DeviceIndex i = 0; i < count; ++i) {
    check(cuDevicePrimaryCtxRetain(&devices[i].context, i), "cuDevicePrimaryCtxRetain");
    for (int j = 0; j < pool_size; ++j) add_stream(i);
    devices[i].freeing = add_stream(i);
  }
}

namespace {

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
  void recordDataPtrOnStream(const c10::DataPtr& data, const Stream& stream) const override {
    add_user(data, stream);
  }
};

}  // namespace

const c10::impl::DeviceGuardImplInterface& guard() {
  static const auto& made = *new FakeGuard;
  return made;
}

namespace {

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

}  // namespace
}  // namespace fake_device
