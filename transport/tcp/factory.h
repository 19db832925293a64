#pragma once

#include <memory>

#include <tutti/status.h>

#include "transport/tcp/options.h"
#include "transport/transport.h"

// The tcp transport connects ranks by TCP; `create` makes it.
namespace tutti::tcp {

// Makes the transport. It listens at once, so that its address can be published, but answers no peer before
// `start`.
Result<std::unique_ptr<tutti::Transport>> create(const Options& options);

}  // namespace tutti::tcp
