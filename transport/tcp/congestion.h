#pragma once

#include <chrono>
#include <string>

#include <asio/ip/address.hpp>

#include "transport/tcp/socket.h"

namespace tutti::tcp {

// `Congestion` chooses the congestion control that a connection gets from the kernel. Within a host and
// between neighbours nothing is to be gained from probing the way for its capacity: BBR's pacing halves what
// loopback carries. There Reno is taken, where the system permits it; elsewhere the system's choice stays.
class Congestion {
 public:
  // `setting`: empty, to choose as above; "system", to change nothing; or a name for all connections.
  explicit Congestion(std::string setting);

  // For a socket that is about to connect to, or to listen at, `address`; empty: leave it. It has to be put
  // on before there is a connection, since pacing that BBR has begun goes on under its successor.
  std::string choose(const asio::ip::address& address, bool same_host) const;
  // For a connection that exists: makes up for what was not known before. An address that looks near can be
  // far away behind a tunnel; the round trip of the handshake tells.
  void settle(Socket& socket, bool same_host) const;

 private:
  std::string setting_;
  std::string system_;  // the kernel's choice
};

}  // namespace tutti::tcp
