#include "transport/meeting/socket.h"

#include <algorithm>
#include <cerrno>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "core/error_text.h"

namespace tutti::meeting {
namespace {

constexpr int backlog = 4096;  // the kernel takes the smaller of this and net.core.somaxconn

// The control plane's heartbeats detect dead hosts. These options only ensure that no connection stays open
// forever.
constexpr int keepalive_idle_s = 30;
constexpr int keepalive_interval_s = 10;
constexpr int keepalive_probes = 6;

// A refusal by the kernel is ignored: binding fails if one of these options was needed.
void set_option(int socket, int level, int name, int value = 1) {
  static_cast<void>(setsockopt(socket, level, name, &value, sizeof value));
}

Descriptor open_socket(int family) {
  return Descriptor::guarded(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
}

// Makes a socket that listens at `address`. If that is not possible, returns no descriptor and sets `errno`.
Descriptor listen_at(const SocketAddress& address, const std::function<void(int)>& prepare) {
  Descriptor made = open_socket(address.family());
  if (!made) return made;
  if (prepare) prepare(made.get());
  // SO_REUSEADDR allows a port where connections of an earlier run linger, but not a port that has a
  // listener.
  if (address.port() != 0) set_option(made.get(), SOL_SOCKET, SO_REUSEADDR);
  if (address.family() == AF_INET6) set_option(made.get(), IPPROTO_IPV6, IPV6_V6ONLY);
  if (bind(made.get(), address.raw(), address.length) == 0 && listen(made.get(), backlog) == 0) return made;
  const int error = errno;
  made.reset();
  errno = error;
  return made;
}

// `ask` is getsockname() or getpeername().
std::optional<SocketAddress> address_of(int descriptor, int (*ask)(int, sockaddr*, socklen_t*)) {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (ask(descriptor, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0)
    return std::nullopt;
  return address;
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

Descriptor begin_connect(const SocketAddress& address, int& error, const std::function<void(int)>& prepare) {
  Descriptor made = open_socket(address.family());
  error = made ? 0 : errno;
  if (!made) return made;
  if (prepare) prepare(made.get());
  if (connect(made.get(), address.raw(), address.length) != 0) error = errno;
  // If a signal interrupts the call, the kernel still continues to connect.
  if (error == EINTR) error = EINPROGRESS;
  return made;
}

int connect_result(int descriptor) {
  int result = 0;
  socklen_t length = sizeof result;
  return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &result, &length) == 0 ? result : errno;
}

std::optional<SocketAddress> local_address(int descriptor) { return address_of(descriptor, getsockname); }

std::optional<SocketAddress> remote_address(int descriptor) { return address_of(descriptor, getpeername); }

void tune(int descriptor) {
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY);
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_idle_s);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, keepalive_interval_s);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, keepalive_probes);
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
