#pragma once

#include <memory>

#include <tutti/status.h>

#include "transport/shm/options.h"
#include "transport/transport.h"

// The shm transport connects ranks of one host by shared memory; `create` makes it.
namespace tutti::shm {

// Makes the transport. Everything that the transport needs from the system is tested first, so that `create`
// fails on a host that forbids any of it. The transport listens at once, so that its address can be
// published, but answers no peer before `start`.
Result<std::unique_ptr<tutti::Transport>> create(const Options& options);

}  // namespace tutti::shm
