#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tutti/credentials.h>

namespace tutti::tcp {

// `Options` are what a tcp transport is made from.
struct Options {
  // Numeric addresses to listen at, with one listener each. Peers try them in this order.
  std::vector<std::string> bind = {"127.0.0.1"};
  // The addresses to publish instead, if peers must use others (NAT, a service's name). They may be names,
  // which are resolved at once; the first one stands for the first listener, and so on.
  std::vector<std::string> advertise = {};
  // The range of ports to choose from. Zero means any port.
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
  // The size of the kernel buffer for each direction of a connection. Zero leaves it to the kernel, which
  // adapts it.
  int socket_buffer = 0;
  // The number of connections to each peer that share the payloads of large messages; the peer makes as many
  // to us. Zero means one for each pair of addresses.
  int sockets = 0;
  // The `setting` of Congestion (congestion.h).
  std::string congestion = {};
  // A process that connects must say who it is within this time.
  std::chrono::milliseconds handshake_timeout{5000};
  // The credentials that guard every connection. If null, connections have no guard.
  security::SharedCredentials credentials = {};
};

}  // namespace tutti::tcp
