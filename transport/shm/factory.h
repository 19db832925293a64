#pragma once

#include <memory>

#include <tutti/status.h>

#include "transport/shm/options.h"
#include "transport/transport.h"

// The shm transport connects ranks of one host by shared memory; `create` makes it.
namespace tutti::shm {

// Tries everything that the transport needs of the system, so that a host that forbids any of it is noticed
// here, and listens, so that the address can be published. No connection is answered before `start`.
Result<std::unique_ptr<tutti::Transport>> create(const Options& options);

}  // namespace tutti::shm
