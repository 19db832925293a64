#pragma once

#include <chrono>
#include <string>

#include <asio/ip/address.hpp>

#include "transport/tcp/socket.h"

namespace tutti::tcp {

// `Congestion` chooses the congestion control that a connection gets from the kernel. Within a host and
// between neighbours it does not pay to probe the path for its capacity: BBR's pacing halves the speed of
// loopback. There it chooses Reno, where the system permits it; elsewhere it leaves the system's choice.
class Congestion {
 public:
  // `setting`: empty, to choose as above; "system", to change nothing; or a name for all connections.
  explicit Congestion(std::string setting);

  // Returns the name for a socket that is about to connect to, or to listen at, `address`; empty: leave the
  // kernel's choice. It must be set before there is a connection, since pacing that BBR has begun goes on
  // under its successor.
  std::string choose(const asio::ip::address& address, bool same_host) const;
  // Corrects the choice for a connection that exists: an address that looks near can be far away behind a
  // tunnel, which the round trip of the handshake shows.
  void settle(Socket& socket, bool same_host) const;

 private:
  std::string setting_;
  std::string system_;  // the kernel's choice
};

}  // namespace tutti::tcp
