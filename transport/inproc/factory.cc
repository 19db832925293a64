#include "transport/inproc/factory.h"

#include "transport/inproc/hub.h"
#include "transport/inproc/transport.h"

namespace tutti::inproc {

std::shared_ptr<Hub> make_hub() { return std::make_shared<Hub>(); }

std::unique_ptr<tutti::Transport> create(Options options) {
  return std::make_unique<Transport>(std::move(options));
}

}  // namespace tutti::inproc
