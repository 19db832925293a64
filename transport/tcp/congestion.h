#pragma once

#include <chrono>
#include <string>

#include <tutti/address.h>

namespace tutti::tcp {

// `Congestion` chooses the kernel's congestion control for each connection. Within a host and on a private
// network, probing the path for its capacity only costs time: BBR's pacing halves the speed of loopback. In
// these two cases `Congestion` chooses Reno, if the system permits it. In all other cases it keeps the
// system's choice.
class Congestion {
 public:
  // If `setting` is empty, the choice is as described above. If `setting` is "system", nothing is changed.
  // Any other text names the congestion control of all connections. If the kernel refuses it, the constructor
  // logs a warning, and the kernel's choice stays.
  explicit Congestion(std::string setting);

  // Returns the name of the congestion control for a socket that is about to connect to `address`, or to
  // listen there. If the name is empty, the kernel's choice stays. The name must be set before there is a
  // connection: once BBR has begun to pace, the pacing continues under any other congestion control.
  std::string choose(const SocketAddress& address, bool same_host) const;
  // Corrects the choice for an established connection. An address that looks near can be far away, behind a
  // tunnel; the round trip of the handshake shows this.
  void settle(int descriptor, bool same_host) const;

 private:
  std::string setting_;
  std::string system_;  // the kernel's choice
};

}  // namespace tutti::tcp
