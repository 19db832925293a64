#include "transport/nccl/factory.h"

#include "transport/nccl/offload.h"

namespace tutti::nccl {

Result<std::unique_ptr<tutti::Offload>> create(const Options& options) {
  const Result<const cuda::Api*> cuda = cuda::load(options.cuda_library);
  if (!cuda.ok()) return cuda.status();
  const Result<Api> api = load(options.nccl_library);
  if (!api.ok()) return api.status();
  return std::unique_ptr<tutti::Offload>(std::make_unique<Offload>(**cuda, *api));
}

}  // namespace tutti::nccl
