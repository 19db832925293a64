#include "transport/mpi/factory.h"

#include <utility>

#include "transport/mpi/transport.h"

namespace tutti::mpi {

Result<std::unique_ptr<tutti::Transport>> create(const Options& options) {
  auto transport = std::make_unique<Transport>(options);
  if (const Status prepared = transport->prepare(); !prepared.ok()) return prepared;
  return std::unique_ptr<tutti::Transport>(std::move(transport));
}

}  // namespace tutti::mpi
