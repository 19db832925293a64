// Compares tutti's declarations of NCCL with NCCL's header. Also loads the real library, if
// TUTTI_TEST_NCCL_LIBRARY names its file.

#include "transport/nccl/api.h"

#include <cstddef>
#include <cstdlib>
#include <string>
#include <type_traits>

#include <gmock/gmock.h>

#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace tutti::nccl {
namespace {

using testing::HasSubstr;

TEST(NcclApi, ALibraryThatIsMissingIsUnsupported) {
  const Result<Api> api = load("/no/such/libnccl.so");
  EXPECT_EQ(api.status().code(), Code::unsupported);
  EXPECT_THAT(api.status().message(), HasSubstr("/no/such/libnccl.so"));
}

TEST(NcclApi, AnotherLibraryIsUnsupported) {
  const Result<Api> api = load("libc.so.6");
  EXPECT_EQ(api.status().code(), Code::unsupported);
  EXPECT_THAT(api.status().message(), HasSubstr("libc.so.6 has no function ncclGetVersion"));
}

TEST(NcclApi, VersionsAsText) {
  EXPECT_EQ(to_string(2708), "2.7.8");
  EXPECT_EQ(to_string(21400), "2.14.0");
  EXPECT_EQ(to_string(22705), "2.27.5");
}

TEST(NcclApi, TheRealLibraryHasAllFunctions) {
  const char* const path = std::getenv("TUTTI_TEST_NCCL_LIBRARY");
  if (path == nullptr) GTEST_SKIP() << "TUTTI_TEST_NCCL_LIBRARY does not name the real libnccl.so.2";
  const Result<Api> api = load(path);
  ASSERT_TRUE(api.ok()) << api.status().to_string();
  EXPECT_GE(api->version, oldest_version);
  EXPECT_EQ(api->CommRegister != nullptr, api->version >= 21900) << to_string(api->version);
  EXPECT_EQ(api->MemAlloc != nullptr, api->version >= 21900) << to_string(api->version);
}

#if NCCL_VERSION_CODE >= 22400  // older headers lack some of the declarations

// Returns whether values of both types are passed in the same way.
template <typename Ours, typename Theirs>
constexpr bool alike() {
  if constexpr (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>) {
    return std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>;
  } else {
    return std::is_class_v<Ours> == std::is_class_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
  }
}

template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
constexpr bool agree(OurResult (*)(Ours...), TheirResult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return alike<OurResult, TheirResult>() && (alike<Ours, Theirs>() && ...);
  }
  return false;
}

TEST(NcclApi, TheFunctionsAreThoseOfTheHeader) {
  const Api ours{};
  EXPECT_TRUE(agree(ours.GetVersion, &ncclGetVersion));
  EXPECT_TRUE(agree(ours.GetErrorString, &ncclGetErrorString));
  EXPECT_TRUE(agree(ours.GetLastError, &ncclGetLastError));
  EXPECT_TRUE(agree(ours.GetUniqueId, &ncclGetUniqueId));
  EXPECT_TRUE(agree(ours.CommInitRankConfig, &ncclCommInitRankConfig));
  EXPECT_TRUE(agree(ours.CommGetAsyncError, &ncclCommGetAsyncError));
  EXPECT_TRUE(agree(ours.CommFinalize, &ncclCommFinalize));
  EXPECT_TRUE(agree(ours.CommDestroy, &ncclCommDestroy));
  EXPECT_TRUE(agree(ours.CommAbort, &ncclCommAbort));
  EXPECT_TRUE(agree(ours.GroupStart, &ncclGroupStart));
  EXPECT_TRUE(agree(ours.GroupEnd, &ncclGroupEnd));
  EXPECT_TRUE(agree(ours.AllReduce, &ncclAllReduce));
  EXPECT_TRUE(agree(ours.Reduce, &ncclReduce));
  EXPECT_TRUE(agree(ours.ReduceScatter, &ncclReduceScatter));
  EXPECT_TRUE(agree(ours.Broadcast, &ncclBroadcast));
  EXPECT_TRUE(agree(ours.AllGather, &ncclAllGather));
  EXPECT_TRUE(agree(ours.Send, &ncclSend));
  EXPECT_TRUE(agree(ours.Recv, &ncclRecv));
  EXPECT_TRUE(agree(ours.RedOpCreatePreMulSum, &ncclRedOpCreatePreMulSum));
  EXPECT_TRUE(agree(ours.RedOpDestroy, &ncclRedOpDestroy));
  EXPECT_TRUE(agree(ours.CommRegister, &ncclCommRegister));
  EXPECT_TRUE(agree(ours.CommDeregister, &ncclCommDeregister));
  EXPECT_TRUE(agree(ours.MemAlloc, &ncclMemAlloc));
  EXPECT_TRUE(agree(ours.MemFree, &ncclMemFree));
}

TEST(NcclApi, TheValuesAreThoseOfTheHeader) {
  EXPECT_EQ(success, ncclSuccess);
  EXPECT_EQ(remote_error, ncclRemoteError);
  EXPECT_EQ(in_progress, ncclInProgress);
  EXPECT_EQ(int8, ncclInt8);
  EXPECT_EQ(uint8, ncclUint8);
  EXPECT_EQ(int32, ncclInt32);
  EXPECT_EQ(uint32, ncclUint32);
  EXPECT_EQ(int64, ncclInt64);
  EXPECT_EQ(uint64, ncclUint64);
  EXPECT_EQ(float16, ncclFloat16);
  EXPECT_EQ(float32, ncclFloat32);
  EXPECT_EQ(float64, ncclFloat64);
  EXPECT_EQ(bfloat16, ncclBfloat16);
  EXPECT_EQ(float8_e4m3, ncclFloat8e4m3);
  EXPECT_EQ(float8_e5m2, ncclFloat8e5m2);
  EXPECT_EQ(sum, ncclSum);
  EXPECT_EQ(product, ncclProd);
  EXPECT_EQ(max, ncclMax);
  EXPECT_EQ(min, ncclMin);
  EXPECT_EQ(avg, ncclAvg);
  EXPECT_EQ(scalar_host_immediate, ncclScalarHostImmediate);
  EXPECT_EQ(oldest_version, NCCL_VERSION(2, 14, 0));
  EXPECT_EQ(first_version_with_float8, NCCL_VERSION(2, 24, 0));
  EXPECT_EQ(sizeof(UniqueId), sizeof(ncclUniqueId));
}

TEST(NcclApi, TheConfigurationIsTheBeginningOfTheHeaders) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  EXPECT_EQ(offsetof(Config, size), offsetof(ncclConfig_t, size));
  EXPECT_EQ(offsetof(Config, magic), offsetof(ncclConfig_t, magic));
  EXPECT_EQ(offsetof(Config, version), offsetof(ncclConfig_t, version));
  EXPECT_EQ(offsetof(Config, blocking), offsetof(ncclConfig_t, blocking));
  EXPECT_EQ(sizeof ours, offsetof(Config, padding) + sizeof ours.padding);
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.padding, NCCL_CONFIG_UNDEF_INT);
}

#else

TEST(NcclApi, TheDeclarationsAreThoseOfTheHeader) {
  GTEST_SKIP()
      << "no nccl.h of NCCL 2.24 or later was found: install tests/gpu/requirements.txt in .venv, or set "
         "TUTTI_NCCL_INCLUDE_DIR";
}

#endif

}  // namespace
}  // namespace tutti::nccl
