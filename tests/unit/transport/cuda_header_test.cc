// Tests that transport/cuda/api.h agrees with the header of the CUDA driver, if CMake has found one.
#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <array>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <type_traits>

#include <cuda.h>

#include "transport/cuda/api.h"

namespace tutti::cuda {
namespace {

// A `Kind` holds the properties of a type that matter to the calling convention.
struct Kind {
  std::size_t size = 0;
  bool pointer = false;
  bool integer = false;
  bool operator==(const Kind&) const = default;
};

template <class T>
constexpr Kind kind_of() {
  return {sizeof(T), std::is_pointer_v<T>, std::is_integral_v<T> || std::is_enum_v<T>};
}

template <class Result, class... Parameters>
constexpr std::array<Kind, sizeof...(Parameters) + 1> kinds(Result (*)(Parameters...)) {
  return {kind_of<Result>(), kind_of<Parameters>()...};
}

// Returns whether a function of the header and a member of `Api` have equal kinds of results and parameters.
template <class Ours, class Theirs>
constexpr bool agree(Ours ours, Theirs theirs) {
  constexpr auto no_ours = static_cast<Ours>(nullptr);
  constexpr auto no_theirs = static_cast<Theirs>(nullptr);
  static_cast<void>(ours);
  static_cast<void>(theirs);
  if constexpr (kinds(no_ours).size() == kinds(no_theirs).size()) return kinds(no_ours) == kinds(no_theirs);
  return false;
}

std::string source_of_api() {
  std::ifstream file(TUTTI_SOURCE_DIR "/transport/cuda/api.cc");
  return {std::istreambuf_iterator<char>(file), {}};
}

// The header renames some functions, such as cuMemFree to cuMemFree_v2. `TUTTI_TEXT` gives the new name.
#define TUTTI_TEXT_OF(name) #name
#define TUTTI_TEXT(name) TUTTI_TEXT_OF(name)
#define TUTTI_CHECK(member)                                                                                  \
  EXPECT_TRUE(agree(Api{}.member, &cu##member)) << #member;                                                  \
  EXPECT_NE(source.find("TUTTI_BIND(" #member ", \"" TUTTI_TEXT(cu##member) "\")"), source.npos) << #member; \
  ++checked

TEST(CudaHeader, HasTheFunctions) {
  const std::string source = source_of_api();
  int checked = 0;
  TUTTI_CHECK(Init);
  TUTTI_CHECK(DriverGetVersion);
  TUTTI_CHECK(GetErrorName);
  TUTTI_CHECK(GetErrorString);
  TUTTI_CHECK(DeviceGetCount);
  TUTTI_CHECK(DeviceGet);
  TUTTI_CHECK(DeviceGetPCIBusId);
  TUTTI_CHECK(DeviceGetAttribute);
  TUTTI_CHECK(DevicePrimaryCtxRetain);
  TUTTI_CHECK(DevicePrimaryCtxRelease);
  TUTTI_CHECK(CtxPushCurrent);
  TUTTI_CHECK(CtxPopCurrent);
  TUTTI_CHECK(CtxGetDevice);
  TUTTI_CHECK(StreamCreate);
  TUTTI_CHECK(StreamDestroy);
  TUTTI_CHECK(StreamSynchronize);
  TUTTI_CHECK(StreamGetCtx);
  TUTTI_CHECK(StreamWaitEvent);
  TUTTI_CHECK(StreamWaitValue32);
  TUTTI_CHECK(StreamIsCapturing);
  TUTTI_CHECK(ThreadExchangeStreamCaptureMode);
  TUTTI_CHECK(EventCreate);
  TUTTI_CHECK(EventDestroy);
  TUTTI_CHECK(EventRecord);
  TUTTI_CHECK(EventQuery);
  TUTTI_CHECK(MemcpyAsync);
  TUTTI_CHECK(MemsetD8Async);
  TUTTI_CHECK(MemAlloc);
  TUTTI_CHECK(MemFree);
  TUTTI_CHECK(MemAllocAsync);
  TUTTI_CHECK(MemFreeAsync);
  TUTTI_CHECK(PointerGetAttribute);
  TUTTI_CHECK(MemHostAlloc);
  TUTTI_CHECK(MemFreeHost);
  TUTTI_CHECK(MemHostGetDevicePointer);
  EXPECT_EQ(sizeof(Api), static_cast<std::size_t>(checked) * sizeof(void*))
      << "a function is not in this list";
}

TEST(CudaHeader, DifferencesAreNoticed) {
  EXPECT_FALSE(agree(Api{}.Init, &cuDeviceGet));
  EXPECT_FALSE(agree(Api{}.EventQuery, &cuInit));
  EXPECT_FALSE(agree(Api{}.StreamWaitValue32, &cuStreamWaitValue64));
}

TEST(CudaHeader, HasTheTypesAndConstants) {
  EXPECT_EQ(kind_of<Outcome>(), kind_of<CUresult>());
  EXPECT_EQ(kind_of<Ordinal>(), kind_of<CUdevice>());
  EXPECT_EQ(kind_of<Address>(), kind_of<CUdeviceptr>());
  EXPECT_TRUE((std::is_same_v<Context, CUcontext>));
  EXPECT_TRUE((std::is_same_v<StreamHandle, CUstream>));
  EXPECT_TRUE((std::is_same_v<EventHandle, CUevent>));
  EXPECT_EQ(success, CUDA_SUCCESS);
  EXPECT_EQ(out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(not_initialized, CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(invalid_handle, CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(not_ready, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(capture_implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(stream_non_blocking, unsigned{CU_STREAM_NON_BLOCKING});
  EXPECT_EQ(event_disable_timing, unsigned{CU_EVENT_DISABLE_TIMING});
  EXPECT_EQ(host_alloc_portable, unsigned{CU_MEMHOSTALLOC_PORTABLE});
  EXPECT_EQ(host_alloc_device_map, unsigned{CU_MEMHOSTALLOC_DEVICEMAP});
  EXPECT_EQ(wait_value_at_least, unsigned{CU_STREAM_WAIT_VALUE_GEQ});
  EXPECT_EQ(attribute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(attribute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(attribute_memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
  EXPECT_EQ(attribute_device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
  EXPECT_EQ(memory_type_device, unsigned{CU_MEMORYTYPE_DEVICE});
  EXPECT_EQ(capture_status_none, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(capture_mode_relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
}

}  // namespace
}  // namespace tutti::cuda

#else

TEST(CudaHeader, Agrees) {
  GTEST_SKIP() << "no cuda.h was found: install tests/gpu/requirements.txt in .venv, or set "
                  "TUTTI_CUDA_INCLUDE_DIR";
}

#endif
