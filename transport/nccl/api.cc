#include "transport/nccl/api.h"

#include <vector>

#include "core/shared_library.h"

namespace tutti::nccl {

namespace {

// Returns the name of a function that the library lacks, or null if it has all functions that are needed.
const char* bind_all(const SharedLibrary& library, Api& api) {
#define TUTTI_BIND(member) \
  if (!library.bind("nccl" #member, api.member)) return "nccl" #member
  TUTTI_BIND(GetErrorString);
  TUTTI_BIND(GetLastError);
  TUTTI_BIND(GetUniqueId);
  TUTTI_BIND(CommInitRankConfig);
  TUTTI_BIND(CommGetAsyncError);
  TUTTI_BIND(CommFinalize);
  TUTTI_BIND(CommDestroy);
  TUTTI_BIND(CommAbort);
  TUTTI_BIND(GroupStart);
  TUTTI_BIND(GroupEnd);
  TUTTI_BIND(AllReduce);
  TUTTI_BIND(Reduce);
  TUTTI_BIND(ReduceScatter);
  TUTTI_BIND(Broadcast);
  TUTTI_BIND(AllGather);
  TUTTI_BIND(Send);
  TUTTI_BIND(Recv);
  TUTTI_BIND(RedOpCreatePreMulSum);
  TUTTI_BIND(RedOpDestroy);
#undef TUTTI_BIND
  const bool registers = library.bind("ncclCommRegister", api.CommRegister) &&
                         library.bind("ncclCommDeregister", api.CommDeregister) &&
                         library.bind("ncclMemAlloc", api.MemAlloc) &&
                         library.bind("ncclMemFree", api.MemFree);
  if (!registers) {
    api.CommRegister = nullptr;
    api.CommDeregister = nullptr;
    api.MemAlloc = nullptr;
    api.MemFree = nullptr;
  }
  return nullptr;
}

}  // namespace

Result<Api> load(const std::string& path) {
  const std::vector<std::string> names = {path.empty() ? "libnccl.so.2" : path};
  const Result<SharedLibrary> library = SharedLibrary::open(names);
  if (!library.ok()) return library.status();
  const auto lacks = [&](const char* function) {
    return Status(Code::unsupported, library->name() + " has no function " + function);
  };
  Api api{};
  if (!library->bind("ncclGetVersion", api.GetVersion)) return lacks("ncclGetVersion");
  if (api.GetVersion(&api.version) != success || api.version < oldest_version) {
    return Status(Code::unsupported, library->name() + " is NCCL " + to_string(api.version) +
                                         "; tutti needs NCCL " + to_string(oldest_version) + " or later");
  }
  if (const char* const missing = bind_all(*library, api)) return lacks(missing);
  return api;
}

// Up to version 2.8, the number has one digit for the minor version.
std::string to_string(int version) {
  const bool old = version < 10000;
  const int major = version / (old ? 1000 : 10000);
  const int minor = old ? version / 100 % 10 : version / 100 % 100;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(version % 100);
}

Status status_of(const Api& api, Outcome outcome, const char* attempt, Comm comm) {
  if (outcome == success) return {};
  std::string text = std::string(attempt) + ": " + api.GetErrorString(outcome);
  const char* const last = api.GetLastError(comm);
  if (last != nullptr && *last != '\0') text += std::string(" (") + last + ")";
  return Status(Code::aborted, text);
}

}  // namespace tutti::nccl
