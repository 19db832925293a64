#include "transport/meeting/socket.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include <netinet/in.h>
#include <sys/socket.h>

#include <tutti/address.h>

#include "core/error_text.h"

namespace tutti::meeting {
namespace {

constexpr int backlog = 4096;  // the kernel takes the smaller of this and net.core.somaxconn

void set_option(const Descriptor& socket, int level, int name) {
  const int on = 1;
  static_cast<void>(setsockopt(socket.get(), level, name, &on, sizeof on));
}

// Makes a socket that listens at `address`. If that is not possible, returns no descriptor and sets `errno`.
Descriptor listen_at(const SocketAddress& address, const std::function<void(int)>& prepare) {
  Descriptor made =
      Descriptor::guarded(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!made) return made;
  if (prepare) prepare(made.get());
  // This allows a port where connections of an earlier run linger, but not one that has a listener.
  if (address.port() != 0) set_option(made, SOL_SOCKET, SO_REUSEADDR);
  if (address.family() == AF_INET6) set_option(made, IPPROTO_IPV6, IPV6_V6ONLY);
  if (bind(made.get(), address.raw(), address.length) == 0 && listen(made.get(), backlog) == 0) return made;
  const int error = errno;
  made.reset();
  errno = error;
  return made;
}

}  // namespace

Result<Descriptor> listen_on(const std::string& who, const std::string& host, std::uint16_t first_port,
                             std::uint16_t last_port, const std::function<void(int)>& prepare) {
  int error = EINVAL;
  for (std::uint32_t port = first_port; port <= std::max(first_port, last_port); ++port) {
    const auto address = parse_address(host, static_cast<std::uint16_t>(port));
    if (!address) break;
    Descriptor made = listen_at(*address, prepare);
    if (made) return made;
    error = errno;
    if (error != EADDRINUSE && error != EACCES) break;
  }
  if (error == EADDRINUSE && first_port != 0 && last_port >= first_port) {
    return Status(Code::resource_exhausted, who + ": no port of " + std::to_string(first_port) + "-" +
                                                std::to_string(last_port) +
                                                " (TUTTI_PORT_RANGE) is free on " + host);
  }
  return Status(is_scarcity(error) ? Code::resource_exhausted : Code::invalid_argument,
                who + ": cannot listen on " + host + ": " + error_text(error));
}

Descriptor accept_next(int listener, int& error) {
  int accepted = -1;
  do {
    accepted = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  } while (accepted < 0 && errno == EINTR);
  error = accepted < 0 ? errno : 0;
  return Descriptor::guarded(accepted);
}

bool is_scarcity(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace tutti::meeting
