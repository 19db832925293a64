#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include <tutti/credentials.h>
#include <tutti/status.h>

#include "transport/transport.h"

// The shm transport connects ranks of one host by shared memory; `create` makes it.
namespace tutti::shm {

struct Options {
  // Bytes of the ring in each direction between two ranks; a power of two.
  std::size_t ring = 128 * 1024;
  // A process that connects must have said who it is after this long.
  std::chrono::milliseconds handshake_timeout{5000};
  // What every connection is guarded by; null: nothing.
  security::SharedCredentials credentials = {};
};

// Tries everything that it needs of the system, so that a host that forbids it says so here; listens, so that
// the address can be published. Answers nobody before `start`.
Result<std::unique_ptr<Transport>> create(const Options& options);

}  // namespace tutti::shm
