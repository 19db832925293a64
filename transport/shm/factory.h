#pragma once

#include <memory>

#include <tutti/status.h>

#include "transport/shm/options.h"
#include "transport/transport.h"

// The shm transport connects ranks of one host by shared memory; `create` makes it.
namespace tutti::shm {

// Makes the transport. It tests everything that the transport needs of the system, so that it fails here on a
// host that forbids any of it. It listens, so that the address can be published, but answers no peer before
// `start`.
Result<std::unique_ptr<tutti::Transport>> create(const Options& options);

}  // namespace tutti::shm
