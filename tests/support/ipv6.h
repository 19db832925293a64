#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tutti::test {

// Returns whether this host has an IPv6 loopback. It does not call the code under test, since a
// failure of that code must not look like a host without IPv6.
inline bool has_ipv6_loopback() {
  const int descriptor = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool bound = bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(descriptor);
  return bound;
}

}  // namespace tutti::test
