#include "transport/shm/factory.h"

#include "transport/shm/transport.h"

namespace tutti::shm {

Result<std::unique_ptr<tutti::Transport>> create(const Options& options) {
  auto transport = std::make_unique<Transport>(options);
  const Status prepared = transport->prepare();
  if (!prepared.ok()) return prepared.with_context("shm");
  return std::unique_ptr<tutti::Transport>(std::move(transport));
}

}  // namespace tutti::shm
