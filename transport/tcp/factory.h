#pragma once

#include <memory>

#include <tutti/status.h>

#include "transport/tcp/options.h"
#include "transport/transport.h"

// The tcp transport connects ranks by TCP; `create` makes it.
namespace tutti::tcp {

// Binds and listens, so that the address can be published. No connection is answered before `start`.
Result<std::unique_ptr<tutti::Transport>> create(const Options& options);

}  // namespace tutti::tcp
