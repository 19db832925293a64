#include "transport/nccl/factory.h"

#include <cstdlib>

#include "transport/nccl/offload.h"

namespace tutti::nccl {

namespace {

// The variable NCCL_COMM_BLOCKING overrides the value that callers give for `Config::blocking`. NCCL ignores
// it unless it is 0 or 1.
Status check_environment() {
  const char* const blocking = std::getenv("NCCL_COMM_BLOCKING");
  if (blocking == nullptr || std::strtoll(blocking, nullptr, 0) != 1) return {};
  return Status(Code::unsupported,
                "NCCL_COMM_BLOCKING is 1, so NCCL would wait for other ranks without a time limit");
}

}  // namespace

Result<std::unique_ptr<tutti::Offload>> create(const Options& options) {
  if (options.encrypted)
    return Status(Code::unsupported, "TUTTI_TLS is set, but what NCCL sends would not be encrypted");
  const Result<const cuda::Api*> cuda = cuda::load(options.cuda_library);
  if (!cuda.ok()) return cuda.status();
  if (const Status allowed = check_environment(); !allowed.ok()) return allowed;
  const Result<Api> api = load(options.nccl_library);
  if (!api.ok()) return api.status();
  return std::unique_ptr<tutti::Offload>(std::make_unique<Offload>(**cuda, *api));
}

}  // namespace tutti::nccl
