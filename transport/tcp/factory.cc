#include "transport/tcp/factory.h"

#include <system_error>

#include "core/error_text.h"
#include "transport/tcp/transport.h"

namespace tutti::tcp {

Result<std::unique_ptr<tutti::Transport>> create(const Options& options) {
  try {
    auto transport = std::make_unique<Transport>(options);
    const Status listening = transport->listen();
    if (!listening.ok()) return listening;
    return std::unique_ptr<tutti::Transport>(std::move(transport));
  } catch (const std::system_error& error) {
    return Status(Code::resource_exhausted, "tcp: " + error_text(error.code().value()));
  }
}

}  // namespace tutti::tcp
