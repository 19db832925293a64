#pragma once

#include <chrono>
#include <string>

#include <tutti/credentials.h>

#include "transport/meeting/listeners.h"
#include "transport/message_limits.h"

namespace tutti::tcp {

// `Options` configure a tcp transport.
struct Options : meeting::ListenPlaces {
  // This is the size in bytes of the kernel's buffer for each direction of a connection. Zero leaves the size
  // to the kernel, which adapts it.
  int socket_buffer = 0;
  // This rank sends the payloads of large messages to a peer over this many connections. For messages from
  // the peer, the peer makes connections of its own. Zero means the number of this rank's addresses or of the
  // peer's, whichever is smaller.
  int sockets = 0;
  // This is the `setting` of `Congestion` (congestion.h).
  std::string congestion = {};
  // For each limit, the smaller of this rank's value and the peer's value applies.
  MessageLimits limits = {};
  // A process that connects must say who it is within this time.
  std::chrono::milliseconds handshake_timeout{5000};
  // This holds the credentials that guard every connection. If it is null, connections have no guard.
  security::SharedCredentials credentials = {};
};

}  // namespace tutti::tcp
