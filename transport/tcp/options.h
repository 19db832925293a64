#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tutti/credentials.h>

namespace tutti::tcp {

// `Options` are what a tcp transport is made from.
struct Options {
  // Numeric addresses: one listener each. Peers try them in this order.
  std::vector<std::string> bind = {"127.0.0.1"};
  // The addresses that peers are told instead, where they differ (NAT, a service's name). They may be names,
  // which are resolved at once; the first one stands for the first listener, and so on.
  std::vector<std::string> advertise = {};
  // The ports to choose from; zero: any.
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
  // Kernel buffer per direction and connection; zero leaves it to the kernel, which adapts it.
  int socket_buffer = 0;
  // The number of connections that this rank makes to each peer for the payloads of large messages. The peer
  // makes the same number to this rank. Zero: one for each pair of addresses.
  int sockets = 0;
  // See congestion.h.
  std::string congestion = {};
  // A process that connects must have said who it is after this long.
  std::chrono::milliseconds handshake_timeout{5000};
  // The credentials that guard every connection; null: connections have no guard.
  security::SharedCredentials credentials = {};
};

}  // namespace tutti::tcp
