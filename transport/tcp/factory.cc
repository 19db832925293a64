#include "transport/tcp/factory.h"

#include "transport/tcp/transport.h"

namespace tutti::tcp {

Result<std::unique_ptr<tutti::Transport>> create(const Options& options) {
  auto transport = std::make_unique<Transport>(options);
  const Status listening = transport->listen();
  if (!listening.ok()) return listening;
  return std::unique_ptr<tutti::Transport>(std::move(transport));
}

}  // namespace tutti::tcp
