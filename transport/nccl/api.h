#pragma once

#include <climits>
#include <cstddef>
#include <string>

#include <tutti/status.h>

#include "transport/cuda/api.h"

// This is a type of NCCL. NCCL's header declares it in the same way, so a program may include both headers.
extern "C" {
struct ncclComm;
}

namespace tutti::nccl {

using Outcome = int;     // ncclResult_t
using Comm = ncclComm*;  // ncclComm_t
using Type = int;        // ncclDataType_t
using Op = int;          // ncclRedOp_t
using cuda::StreamHandle;

struct UniqueId {
  char bytes[128];
};

// A `Config` is NCCL's structure as it was in version 2.14. Later versions have more members at the end.
// NCCL gives them their defaults, since `version` says that they are missing.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
  int padding = INT_MIN;  // later versions have a member here; this value means that it is not set
};

// The values below are those of NCCL's header (nccl.h).
inline constexpr Outcome success = 0;
inline constexpr Outcome remote_error = 6;
inline constexpr Outcome in_progress = 7;

inline constexpr Type int8 = 0;
inline constexpr Type uint8 = 1;
inline constexpr Type int32 = 2;
inline constexpr Type uint32 = 3;
inline constexpr Type int64 = 4;
inline constexpr Type uint64 = 5;
inline constexpr Type float16 = 6;
inline constexpr Type float32 = 7;
inline constexpr Type float64 = 8;
inline constexpr Type bfloat16 = 9;
inline constexpr Type float8_e4m3 = 10;
inline constexpr Type float8_e5m2 = 11;

inline constexpr Op sum = 0;
inline constexpr Op product = 1;
inline constexpr Op max = 2;
inline constexpr Op min = 3;
inline constexpr Op avg = 4;

inline constexpr int scalar_host_immediate = 1;

// These versions have the form that `ncclGetVersion` returns.
inline constexpr int oldest_version = 21400;
inline constexpr int first_version_with_float8 = 22400;

// NCCL reduces 8-bit floating-point elements only on devices of compute capability 9.0 or later,
// and fails if one device of a communicator is older.
inline constexpr int least_capability_with_float8 = 90;

// An `Api` holds the functions of NCCL that tutti uses, each under its name without "nccl". NCCL 2.14 and
// later have all of them, except those that may be null.
struct Api {
  int version = 0;
  Outcome (*GetVersion)(int* version);
  const char* (*GetErrorString)(Outcome outcome);
  const char* (*GetLastError)(Comm comm);
  Outcome (*GetUniqueId)(UniqueId* id);
  Outcome (*CommInitRankConfig)(Comm* comm, int size, UniqueId id, int rank, Config* config);
  Outcome (*CommGetAsyncError)(Comm comm, Outcome* error);
  Outcome (*CommFinalize)(Comm comm);
  Outcome (*CommDestroy)(Comm comm);
  Outcome (*CommAbort)(Comm comm);
  Outcome (*GroupStart)();
  Outcome (*GroupEnd)();
  Outcome (*AllReduce)(const void* in, void* out, std::size_t count, Type type, Op op, Comm comm,
                       StreamHandle stream);
  Outcome (*Reduce)(const void* in, void* out, std::size_t count, Type type, Op op, int root, Comm comm,
                    StreamHandle stream);
  Outcome (*ReduceScatter)(const void* in, void* out, std::size_t out_count, Type type, Op op, Comm comm,
                           StreamHandle stream);
  Outcome (*Broadcast)(const void* in, void* out, std::size_t count, Type type, int root, Comm comm,
                       StreamHandle stream);
  Outcome (*AllGather)(const void* in, void* out, std::size_t in_count, Type type, Comm comm,
                       StreamHandle stream);
  Outcome (*Send)(const void* in, std::size_t count, Type type, int peer, Comm comm, StreamHandle stream);
  Outcome (*Recv)(void* out, std::size_t count, Type type, int peer, Comm comm, StreamHandle stream);
  Outcome (*RedOpCreatePreMulSum)(Op* op, void* factor, Type type, int residence, Comm comm);
  Outcome (*RedOpDestroy)(Op op, Comm comm);
  // NCCL 2.19 was the first version with these four functions. With an older NCCL they are null.
  Outcome (*CommRegister)(Comm comm, void* memory, std::size_t bytes, void** handle);
  Outcome (*CommDeregister)(Comm comm, void* handle);
  Outcome (*MemAlloc)(void** memory, std::size_t bytes);
  Outcome (*MemFree)(void* memory);
};

// Finds NCCL. If `path` is not empty, it names NCCL's library. Otherwise the library is the one
// that this process has loaded, or else the one that the system finds. Fails with `unsupported` if
// there is no NCCL or if it is older than 2.14. Any thread may call it.
Result<Api> load(const std::string& path);

// Returns a version as text, such as "2.27.5".
std::string to_string(int version);

// Returns ok, or an error `aborted` that says what was attempted, and contains NCCL's text for the outcome.
// `comm` may be null.
Status status_of(const Api& api, Outcome outcome, const char* attempt, Comm comm);

}  // namespace tutti::nccl
