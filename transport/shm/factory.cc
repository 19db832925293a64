#include "transport/shm/factory.h"

#include "transport/shm/transport.h"

namespace tutti::shm {

Result<std::unique_ptr<Transport>> create(const Options& options) {
  auto transport = std::make_unique<ShmTransport>(options);
  const Status prepared = transport->prepare();
  if (!prepared.ok()) return prepared.with_context("shm");
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace tutti::shm
