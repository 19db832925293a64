#include "transport/cuda/api.h"

#include <map>
#include <mutex>
#include <vector>

#include "core/shared_library.h"

namespace tutti::cuda {

namespace {

// Each `bind_` function returns the name of a driver function that the library lacks, or null if the library
// has them all. Some names end with _v2: the driver's header maps the plain names to these.
#define TUTTI_BIND(member, name) \
  if (!library.bind(name, api.member)) return name

const char* bind_devices_and_streams(const SharedLibrary& library, Api& api) {
  TUTTI_BIND(Init, "cuInit");
  TUTTI_BIND(DriverGetVersion, "cuDriverGetVersion");
  TUTTI_BIND(GetErrorName, "cuGetErrorName");
  TUTTI_BIND(GetErrorString, "cuGetErrorString");
  TUTTI_BIND(DeviceGetCount, "cuDeviceGetCount");
  TUTTI_BIND(DeviceGet, "cuDeviceGet");
  TUTTI_BIND(DeviceGetPCIBusId, "cuDeviceGetPCIBusId");
  TUTTI_BIND(DeviceGetAttribute, "cuDeviceGetAttribute");
  TUTTI_BIND(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  TUTTI_BIND(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  TUTTI_BIND(CtxPushCurrent, "cuCtxPushCurrent_v2");
  TUTTI_BIND(CtxPopCurrent, "cuCtxPopCurrent_v2");
  TUTTI_BIND(CtxGetDevice, "cuCtxGetDevice");
  TUTTI_BIND(StreamCreate, "cuStreamCreate");
  TUTTI_BIND(StreamDestroy, "cuStreamDestroy_v2");
  TUTTI_BIND(StreamSynchronize, "cuStreamSynchronize");
  TUTTI_BIND(StreamGetCtx, "cuStreamGetCtx");
  TUTTI_BIND(StreamWaitEvent, "cuStreamWaitEvent");
  TUTTI_BIND(StreamWaitValue32, "cuStreamWaitValue32_v2");
  TUTTI_BIND(StreamIsCapturing, "cuStreamIsCapturing");
  TUTTI_BIND(ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
  return nullptr;
}

const char* bind_events_and_memory(const SharedLibrary& library, Api& api) {
  TUTTI_BIND(EventCreate, "cuEventCreate");
  TUTTI_BIND(EventDestroy, "cuEventDestroy_v2");
  TUTTI_BIND(EventRecord, "cuEventRecord");
  TUTTI_BIND(EventQuery, "cuEventQuery");
  TUTTI_BIND(MemcpyAsync, "cuMemcpyAsync");
  TUTTI_BIND(MemsetD8Async, "cuMemsetD8Async");
  TUTTI_BIND(MemAlloc, "cuMemAlloc_v2");
  TUTTI_BIND(MemFree, "cuMemFree_v2");
  TUTTI_BIND(MemAllocAsync, "cuMemAllocAsync");
  TUTTI_BIND(MemFreeAsync, "cuMemFreeAsync");
  TUTTI_BIND(PointerGetAttribute, "cuPointerGetAttribute");
  TUTTI_BIND(MemHostAlloc, "cuMemHostAlloc");
  TUTTI_BIND(MemFreeHost, "cuMemFreeHost");
  TUTTI_BIND(MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2");
  return nullptr;
}

#undef TUTTI_BIND

const char* bind_all(const SharedLibrary& library, Api& api) {
  const char* const missing = bind_devices_and_streams(library, api);
  return missing != nullptr ? missing : bind_events_and_memory(library, api);
}

Status load_into(Api& api, const std::string& path) {
  const std::vector<std::string> names = {path.empty() ? "libcuda.so.1" : path};
  const Result<SharedLibrary> library = SharedLibrary::open(names);
  if (!library.ok()) return library.status();
  if (const char* const missing = bind_all(*library, api)) {
    return Status(Code::unsupported, library->name() + " has no function " + missing +
                                         "; tutti needs the driver of CUDA 11.7 or later");
  }
  return {};
}

}  // namespace

Result<const Api*> load(const std::string& path) {
  struct Loaded {
    Api api;
    Status outcome;
  };
  static std::mutex mutex;
  // The map is never destroyed, since other threads may still use a driver when the process ends.
  static auto& drivers = *new std::map<std::string, Loaded>;  // by path
  const std::lock_guard lock(mutex);
  const auto [driver, is_new] = drivers.try_emplace(path);
  if (is_new) driver->second.outcome = load_into(driver->second.api, path);
  if (!driver->second.outcome.ok()) return driver->second.outcome;
  return static_cast<const Api*>(&driver->second.api);
}

Status status_of(const Api& api, Outcome outcome, const char* attempt) {
  if (outcome == success) return {};
  const char* name = nullptr;
  const char* words = nullptr;
  if (api.GetErrorName(outcome, &name) != success || name == nullptr) name = "unknown error";
  if (api.GetErrorString(outcome, &words) != success || words == nullptr) words = "no description";
  const Code code = outcome == out_of_memory ? Code::resource_exhausted : Code::aborted;
  return Status(code, std::string(attempt) + ": " + name + " (" + words + ")");
}

}  // namespace tutti::cuda
