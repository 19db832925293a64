#include "transport/staged/factory.h"

#include "transport/staged/offload.h"

namespace tutti::staged {

Result<std::unique_ptr<Offload>> create(const Options& options) {
  const Result<const cuda::Api*> api = cuda::load(options.driver);
  if (!api.ok()) return api.status();
  return std::unique_ptr<Offload>(std::make_unique<StagedOffload>(**api, options.piece_bytes));
}

}  // namespace tutti::staged
