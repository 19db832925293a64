#pragma once

#include <chrono>
#include <cstddef>

#include <tutti/credentials.h>

#include "transport/message_limits.h"

namespace tutti::shm {

// `Options` configure an shm transport.
struct Options {
  // The ring in each direction between two ranks has this many bytes. It must be a power of two.
  std::size_t ring = 128 * 1024;
  // For each limit, the smaller of this rank's value and the peer's value applies.
  MessageLimits limits = {};
  // A process that connects must say who it is within this time.
  std::chrono::milliseconds handshake_timeout{5000};
  // This holds the credentials that guard every connection. If it is null, connections have no guard.
  security::SharedCredentials credentials = {};
};

}  // namespace tutti::shm
