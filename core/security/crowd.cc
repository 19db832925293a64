#include "core/security/crowd.h"

#include <cstring>

#include <netinet/in.h>
#include <sys/socket.h>

namespace tutti::security {

std::uint64_t origin_of(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  if (address.ss_family == AF_INET) return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr;
  if (address.ss_family != AF_INET6) return 0;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  std::uint64_t origin = 0;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    std::memcpy(&origin, v6.s6_addr + 12, 4);
  } else {
    std::memcpy(&origin, v6.s6_addr, sizeof origin);
  }
  return origin;
}

}  // namespace tutti::security
