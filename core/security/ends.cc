#include "core/security/ends.h"

#include <array>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tutti::security {
namespace {

std::string text_of(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
    if (mapped) {
      inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, text.data(), text.size());
    } else {
      inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    }
    const std::string host = mapped ? std::string(text.data()) : "[" + std::string(text.data()) + "]";
    return host + ":" + std::to_string(ntohs(v6.sin6_port));
  }
  return "an unknown address";
}

std::string local_text(pid_t pid) { return "a local socket of pid " + std::to_string(pid); }

}  // namespace

std::string own_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) address.ss_family = AF_UNSPEC;
  return address.ss_family == AF_UNIX ? local_text(getpid()) : text_of(address);
}

std::string peer_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) address.ss_family = AF_UNSPEC;
  if (address.ss_family != AF_UNIX) return text_of(address);
  ucred peer{};
  length = sizeof peer;
  static_cast<void>(getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length));
  return local_text(peer.pid);
}

std::string describe_end(std::uint32_t rank, const std::string& address) {
  return rank == nobody ? address : "rank " + std::to_string(rank) + " at " + address;
}

}  // namespace tutti::security
