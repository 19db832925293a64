#include "transport/cuda/device.h"

#include <utility>

namespace tutti::cuda {

namespace {

// Returns ok if the driver can be used and has a device of this number.
Status find_device(const Api& api, int number) {
  if (const Outcome ready = api.Init(0); ready != success)
    return Status(Code::unsupported, status_of(api, ready, "cuInit").message());
  int devices = 0;
  if (const Outcome got = api.DeviceGetCount(&devices); got != success)
    return status_of(api, got, "cuDeviceGetCount");
  if (number >= 0 && number < devices) return {};
  return Status(Code::invalid_argument, "there is no CUDA device " + std::to_string(number) +
                                            ": the driver finds " + std::to_string(devices));
}

// Converts the outcome of a driver function that was given a stream of the program. If the driver does not
// know the stream, the code is `invalid_argument`.
Status status_of_stream(const Api& api, Outcome outcome, const char* attempt) {
  const Status error = status_of(api, outcome, attempt);
  return outcome == invalid_handle ? Status(Code::invalid_argument, error.message()) : error;
}

}  // namespace

Result<std::unique_ptr<Device>> Device::open(const Api& api, int number) {
  if (const Status found = find_device(api, number); !found.ok()) return found;
  std::unique_ptr<Device> device(new Device(api, number));
  if (const Outcome got = api.DeviceGet(&device->ordinal_, number); got != success)
    return status_of(api, got, "cuDeviceGet").with_context(device->name());
  if (const Outcome got = api.DevicePrimaryCtxRetain(&device->context_, device->ordinal_); got != success) {
    device->context_ = nullptr;
    return status_of(api, got, "cuDevicePrimaryCtxRetain").with_context(device->name());
  }
  return device;
}

Device::~Device() {
  if (context_ != nullptr) api_.DevicePrimaryCtxRelease(ordinal_);
}

Result<std::string> Device::bus_address() const {
  char text[bus_address_letters + 1];
  const Outcome got = api_.DeviceGetPCIBusId(text, sizeof text, ordinal_);
  if (got != success) return status_of(api_, got, "cuDeviceGetPCIBusId");
  return std::string(text);
}

Status Device::check_stream(StreamHandle stream) const {
  const Result<Context> context = context_of(api_, stream);
  if (!context.ok()) return context.status();
  if (*context == context_) return {};
  const Current current(api_, *context);
  if (!current.status().ok()) return current.status();
  Ordinal other = ordinal_;
  const Outcome got = api_.CtxGetDevice(&other);
  if (got != success) return status_of(api_, got, "cuCtxGetDevice");
  if (other == ordinal_) return {};
  return Status(Code::invalid_argument, "the stream is of CUDA device " + std::to_string(other) +
                                            ", but the buffers are in memory of " + name());
}

Result<bool> Device::has(StreamHandle stream) const {
  const Result<Context> context = context_of(api_, stream);
  if (!context.ok()) return context.status();
  return *context == context_;
}

Device::Current::Current(const Device& device) : Current(device.api_, device.context_) {}

Device::Current::Current(const Api& api, Context context)
    : api_(api), pushed_(api_.CtxPushCurrent(context)), capture_mode_(capture_mode_relaxed) {
  api_.ThreadExchangeStreamCaptureMode(&capture_mode_);
}

Device::Current::~Current() {
  api_.ThreadExchangeStreamCaptureMode(&capture_mode_);
  Context context = nullptr;
  if (pushed_ == success) api_.CtxPopCurrent(&context);
}

Result<std::vector<int>> capabilities(const Api& api) {
  int devices = 0;
  const Outcome counted = api.DeviceGetCount(&devices);
  if (counted == not_initialized) return Status(Code::unsupported, "CUDA has not been initialized");
  if (counted != success) return status_of(api, counted, "cuDeviceGetCount");
  std::vector<int> all;
  for (int number = 0; number < devices; ++number) {
    Ordinal device = 0;
    int major = 0;
    int minor = 0;
    if (const Outcome got = api.DeviceGet(&device, number); got != success)
      return status_of(api, got, "cuDeviceGet");
    for (const auto& [attribute, value] :
         {std::pair(attribute_capability_major, &major), std::pair(attribute_capability_minor, &minor)}) {
      if (const Outcome got = api.DeviceGetAttribute(value, attribute, device); got != success)
        return status_of(api, got, "cuDeviceGetAttribute");
    }
    all.push_back(10 * major + minor);
  }
  return all;
}

Result<std::unique_ptr<Stream>> Stream::create(const Device& device) {
  const Api& api = device.api();
  StreamHandle handle = nullptr;
  if (const Outcome made = api.StreamCreate(&handle, stream_non_blocking); made != success)
    return status_of(api, made, "cuStreamCreate");
  return std::unique_ptr<Stream>(new Stream(api, handle));
}

Stream::~Stream() { api_.StreamDestroy(handle_); }

Result<Context> context_of(const Api& api, StreamHandle stream) {
  Context context = nullptr;
  const Outcome got = api.StreamGetCtx(stream, &context);
  if (got != success) return status_of_stream(api, got, "cuStreamGetCtx");
  return context;
}

// For the default stream, the driver returns `capture_implicit` if another stream is being captured.
Status refuse_capture(const Api& api, StreamHandle stream) {
  int status = capture_status_none;
  const Outcome outcome = api.StreamIsCapturing(stream, &status);
  if (outcome == success && status == capture_status_none) return {};
  if (outcome == success) return Status(Code::unsupported, "the stream is being captured into a graph");
  const Status error = status_of_stream(api, outcome, "cuStreamIsCapturing");
  return outcome == capture_implicit ? Status(Code::unsupported, error.message()) : error;
}

Status can_follow(const Api& api, void* stream, Memory memory) {
  if (memory.kind() != Memory::Kind::cuda) return {};
  const Result<std::unique_ptr<Device>> device = Device::open(api, memory.device());
  if (!device.ok()) return {};
  const Device::Current current(**device);
  const auto handle = static_cast<StreamHandle>(stream);
  Status refused = refuse_capture(api, handle);
  if (refused.ok()) refused = (*device)->check_stream(handle);
  return refused.code() == Code::aborted ? Status() : refused;
}

Result<std::unique_ptr<Event>> Event::create(const Device& device) { return create(device.api()); }

Result<std::unique_ptr<Event>> Event::create(const Api& api) {
  EventHandle handle = nullptr;
  if (const Outcome made = api.EventCreate(&handle, event_disable_timing); made != success)
    return status_of(api, made, "cuEventCreate");
  return std::unique_ptr<Event>(new Event(api, handle));
}

// The driver records an event only in a stream of the event's own context.
Result<std::unique_ptr<Event>> Event::create_in(const Api& api, StreamHandle stream) {
  const Result<Context> context = context_of(api, stream);
  if (!context.ok()) return context.status();
  const Device::Current current(api, *context);
  Result<std::unique_ptr<Event>> event = create(api);
  if (!event.ok()) return event;
  if (const Status recorded = (*event)->record(stream); !recorded.ok()) return recorded;
  return event;
}

Event::~Event() { api_.EventDestroy(handle_); }

Status Event::record(StreamHandle stream) {
  return status_of(api_, api_.EventRecord(handle_, stream), "cuEventRecord");
}

Status Event::hold(StreamHandle stream) const {
  return status_of(api_, api_.StreamWaitEvent(stream, handle_, 0), "cuStreamWaitEvent");
}

Result<bool> Event::happened() const {
  const Outcome outcome = api_.EventQuery(handle_);
  if (outcome == not_ready) return false;
  if (outcome != success) return status_of(api_, outcome, "cuEventQuery");
  return true;
}

Result<std::unique_ptr<PinnedMemory>> PinnedMemory::create(const Device& device, std::size_t bytes) {
  const Api& api = device.api();
  void* data = nullptr;
  if (const Outcome made = api.MemHostAlloc(&data, bytes, host_alloc_portable | host_alloc_device_map);
      made != success)
    return status_of(api, made, "cuMemHostAlloc");
  Address address = 0;
  if (const Outcome got = api.MemHostGetDevicePointer(&address, data, 0); got != success) {
    api.MemFreeHost(data);
    return status_of(api, got, "cuMemHostGetDevicePointer");
  }
  return std::unique_ptr<PinnedMemory>(new PinnedMemory(api, static_cast<std::byte*>(data), bytes, address));
}

PinnedMemory::~PinnedMemory() { api_.MemFreeHost(data_); }

}  // namespace tutti::cuda
