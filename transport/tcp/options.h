#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tutti/credentials.h>

#include "transport/message_limits.h"

namespace tutti::tcp {

// `Options` configure a tcp transport.
struct Options {
  // The transport has one listener at each of these numeric addresses. Peers try them in this order.
  std::vector<std::string> bind = {"127.0.0.1"};
  // These addresses are published in place of those in `bind`, if peers must use others (because of NAT, or a
  // service's name). They may be names, which are resolved when the transport is made. The first one stands
  // for the first listener, and so on.
  std::vector<std::string> advertise = {};
  // Listeners choose a port from this range. Zero means any port.
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
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
