#include "transport/verbs/factory.h"

#include "transport/verbs/transport.h"

namespace tutti::verbs {

Result<std::unique_ptr<tutti::Transport>> create(const Options& options) {
  auto transport = std::make_unique<Transport>(options);
  const Status prepared = transport->prepare();
  if (!prepared.ok()) return prepared;
  return std::unique_ptr<tutti::Transport>(std::move(transport));
}

}  // namespace tutti::verbs
