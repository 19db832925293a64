#pragma once

#include <chrono>
#include <string>

#include <asio/ip/address.hpp>

#include "transport/tcp/socket.h"

namespace tutti::tcp {

// `Congestion` chooses the congestion control that a connection gets from the kernel. Within a host and on a
// private network, probing the path for its capacity only costs time: BBR's pacing halves the speed of
// loopback. There it chooses Reno, if the system permits it; elsewhere it keeps the system's choice.
class Congestion {
 public:
  // `setting` is empty, to choose as above; "system", to change nothing; or a name for all connections.
  explicit Congestion(std::string setting);

  // Returns the name for a socket that is about to connect to, or to listen at, `address`. If it is empty,
  // the kernel's choice stays. It must be set before there is a connection, since pacing that BBR has begun
  // continues under its successor.
  std::string choose(const asio::ip::address& address, bool same_host) const;
  // Corrects the choice for a connection that exists: an address that looks near can be far away behind a
  // tunnel, which the round trip of the handshake shows.
  void settle(Socket& socket, bool same_host) const;

 private:
  std::string setting_;
  std::string system_;  // the kernel's choice
};

}  // namespace tutti::tcp
