#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <tutti/status.h>

// These are types of the CUDA driver. The driver's header declares them in the same way, so a program may
// include both headers.
extern "C" {
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
}

namespace tutti::cuda {

using Outcome = int;                // CUresult
using Ordinal = int;                // CUdevice
using Address = std::uint64_t;      // CUdeviceptr: an address of a device, or of pinned memory of the host
using Context = CUctx_st*;          // CUcontext
using StreamHandle = CUstream_st*;  // CUstream; equal to the runtime's cudaStream_t
using EventHandle = CUevent_st*;    // CUevent

// The values below are those of the driver's header (cuda.h).
inline constexpr Outcome success = 0;
inline constexpr Outcome out_of_memory = 2;
inline constexpr Outcome not_initialized = 3;
inline constexpr Outcome invalid_handle = 400;
inline constexpr Outcome not_ready = 600;
inline constexpr Outcome capture_implicit = 906;
inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr unsigned host_alloc_portable = 1;
inline constexpr unsigned host_alloc_device_map = 2;
inline constexpr unsigned wait_value_at_least = 0;
inline constexpr int attribute_capability_major = 75;
inline constexpr int attribute_capability_minor = 76;
inline constexpr int attribute_memory_type = 2;
inline constexpr int attribute_device_ordinal = 9;
inline constexpr unsigned memory_type_device = 2;
inline constexpr int capture_status_none = 0;
inline constexpr int capture_mode_relaxed = 2;

// The address of a device on the PCI bus has this many letters ("0000:01:00.0"), without the final NUL.
inline constexpr int bus_address_letters = 12;

// An `Api` holds the functions of the CUDA driver that tutti uses, each under its name without "cu".
// CUDA 11.7 and later have all of them.
struct Api {
  Outcome (*Init)(unsigned flags);
  Outcome (*DriverGetVersion)(int* version);
  Outcome (*GetErrorName)(Outcome error, const char** text);
  Outcome (*GetErrorString)(Outcome error, const char** text);
  Outcome (*DeviceGetCount)(int* count);
  Outcome (*DeviceGet)(Ordinal* device, int number);
  Outcome (*DeviceGetPCIBusId)(char* id, int bytes, Ordinal device);
  Outcome (*DeviceGetAttribute)(int* value, int attribute, Ordinal device);
  Outcome (*DevicePrimaryCtxRetain)(Context* context, Ordinal device);
  Outcome (*DevicePrimaryCtxRelease)(Ordinal device);
  Outcome (*CtxPushCurrent)(Context context);
  Outcome (*CtxPopCurrent)(Context* context);
  Outcome (*CtxGetDevice)(Ordinal* device);
  Outcome (*StreamCreate)(StreamHandle* stream, unsigned flags);
  Outcome (*StreamDestroy)(StreamHandle stream);
  Outcome (*StreamSynchronize)(StreamHandle stream);
  Outcome (*StreamGetCtx)(StreamHandle stream, Context* context);
  Outcome (*StreamWaitEvent)(StreamHandle stream, EventHandle event, unsigned flags);
  Outcome (*StreamWaitValue32)(StreamHandle stream, Address word, std::uint32_t value, unsigned flags);
  Outcome (*StreamIsCapturing)(StreamHandle stream, int* status);
  Outcome (*ThreadExchangeStreamCaptureMode)(int* mode);
  Outcome (*EventCreate)(EventHandle* event, unsigned flags);
  Outcome (*EventDestroy)(EventHandle event);
  Outcome (*EventRecord)(EventHandle event, StreamHandle stream);
  Outcome (*EventQuery)(EventHandle event);
  Outcome (*MemcpyAsync)(Address to, Address from, std::size_t bytes, StreamHandle stream);
  Outcome (*MemsetD8Async)(Address to, unsigned char value, std::size_t bytes, StreamHandle stream);
  Outcome (*MemAlloc)(Address* address, std::size_t bytes);
  Outcome (*MemFree)(Address address);
  Outcome (*MemAllocAsync)(Address* address, std::size_t bytes, StreamHandle stream);
  Outcome (*MemFreeAsync)(Address address, StreamHandle stream);
  Outcome (*PointerGetAttribute)(void* value, int attribute, Address address);
  Outcome (*MemHostAlloc)(void** memory, std::size_t bytes, unsigned flags);
  Outcome (*MemFreeHost)(void* memory);
  Outcome (*MemHostGetDevicePointer)(Address* address, void* memory, unsigned flags);
};

// Finds the driver. If `path` is not empty, it names the driver's library. Otherwise the library is the one
// that this process has loaded, or else the one that the system finds. The result does not change during the
// life of the process. Fails with `unsupported` if there is no driver, or if it is older than CUDA 11.7. Does
// not initialize the driver, since that is slow, and since no forked child can use CUDA afterwards.
// `Device::open` initializes the driver. Any thread may call.
Result<const Api*> load(const std::string& path);

// Returns ok, or an error that says what was attempted, and contains the driver's name and text for the
// outcome. The code is `resource_exhausted` if memory has run out, and otherwise `aborted`.
Status status_of(const Api& api, Outcome outcome, const char* attempt);

}  // namespace tutti::cuda
