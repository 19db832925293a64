#include "transport/tcp/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <asio/ip/v6_only.hpp>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "core/descriptor.h"
#include "core/error_text.h"

namespace tutti::tcp {
namespace {

// Heartbeats detect dead hosts. These options only ensure that no connection stays open forever. The times
// are this long because a peer that does not read for a while (in a debugger, or in a long computation
// without a background thread) is not dead.
constexpr int keepalive_idle_s = 30;
constexpr int keepalive_interval_s = 10;
constexpr int keepalive_probes = 6;
constexpr unsigned user_timeout_ms = 120'000;
constexpr int backlog = 4096;  // the kernel takes the smaller of this and net.core.somaxconn

asio::error_code last_error() { return system_error(errno); }

template <class T>
void set_option(int descriptor, int level, int name, T value) {
  // A refusal by the kernel is ignored, since none of these options is needed for correctness.
  static_cast<void>(setsockopt(descriptor, level, name, &value, sizeof value));
}

Descriptor open_socket(const Endpoint& endpoint, const SocketSetup& setup) {
  const int family = endpoint.protocol().family();
  Descriptor made(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!made) return made;
  if (setup.buffer > 0) {
    set_option(made.get(), SOL_SOCKET, SO_SNDBUF, setup.buffer);
    set_option(made.get(), SOL_SOCKET, SO_RCVBUF, setup.buffer);
  }
  set_congestion(made.get(), setup.congestion);
  return made;
}

// Gives the descriptor to a socket or an acceptor of Asio, which owns it from then on.
template <class AsioSocket>
void adopt(AsioSocket& socket, const Endpoint& endpoint, Descriptor descriptor, asio::error_code& error) {
  socket.assign(endpoint.protocol(), descriptor.get(), error);
  if (!error) static_cast<void>(descriptor.release());
}

asio::error_code listen_on(Acceptor& acceptor, const Endpoint& endpoint, const SocketSetup& setup) {
  asio::error_code error;
  Descriptor made = open_socket(endpoint, setup);
  if (!made) return last_error();
  adopt(acceptor, endpoint, std::move(made), error);
  if (error) return error;
  // This allows a port where connections of an earlier run linger, but not one that has a listener.
  acceptor.set_option(Acceptor::reuse_address(endpoint.port() != 0), error);
  if (endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
  acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(backlog, error);
  if (!error) acceptor.non_blocking(true, error);
  return error;
}

}  // namespace

Result<Acceptor> listen(asio::io_context& io, const asio::ip::address& address, std::uint16_t first_port,
                        std::uint16_t last_port, const SocketSetup& setup) {
  asio::error_code error;
  for (std::uint32_t port = first_port; port <= std::max(first_port, last_port); ++port) {
    Acceptor acceptor(io);
    error = listen_on(acceptor, Endpoint(address, static_cast<std::uint16_t>(port)), setup);
    if (!error) return acceptor;
    if (error != asio::error::address_in_use && error != asio::error::access_denied) break;
  }
  std::string where = address.to_string();
  if (first_port != 0) where += " port " + std::to_string(first_port);
  if (last_port > first_port) where += "-" + std::to_string(last_port);
  return Status(is_scarcity(error) ? Code::resource_exhausted : Code::invalid_argument,
                "tcp: cannot listen on " + where + ": " + text_of(error));
}

Socket accept(asio::io_context& io, Acceptor& acceptor, asio::error_code& error) {
  Socket socket(io);
  sockaddr_storage from{};
  socklen_t length = sizeof from;
  Descriptor accepted;
  do {
    length = sizeof from;
    accepted = Descriptor(accept4(acceptor.native_handle(), reinterpret_cast<sockaddr*>(&from), &length,
                                  SOCK_CLOEXEC | SOCK_NONBLOCK));
  } while (!accepted && errno == EINTR);
  if (!accepted) {
    error = last_error();
    return socket;
  }
  const auto protocol = from.ss_family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
  adopt(socket, Endpoint(protocol, 0), std::move(accepted), error);
  if (!error) socket.non_blocking(true, error);
  return socket;
}

Socket begin_connect(asio::io_context& io, const Endpoint& endpoint, const SocketSetup& setup,
                     asio::error_code& error) {
  Socket socket(io);
  Descriptor made = open_socket(endpoint, setup);
  if (!made) {
    error = last_error();
    return socket;
  }
  adopt(socket, endpoint, std::move(made), error);
  if (!error) socket.non_blocking(true, error);
  if (error) return socket;
  const int descriptor = socket.native_handle();
  if (!setup.local.is_unspecified() && setup.local.is_v4() == endpoint.address().is_v4()) {
    const Endpoint from(setup.local, 0);
    set_option(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    static_cast<void>(::bind(descriptor, from.data(), static_cast<socklen_t>(from.size())));
  }
  // Asio's synchronous connect would wait. If a signal interrupts this call, the kernel still continues to
  // connect.
  const int result = ::connect(descriptor, endpoint.data(), static_cast<socklen_t>(endpoint.size()));
  error = result == 0 ? asio::error_code() : last_error();
  if (error == asio::error::interrupted) error = asio::error::in_progress;
  return socket;
}

asio::error_code connect_result(Socket& socket) {
  int result = 0;
  socklen_t length = sizeof result;
  if (getsockopt(socket.native_handle(), SOL_SOCKET, SO_ERROR, &result, &length) != 0) return last_error();
  return system_error(result);
}

void tune(Socket& socket) {
  const int descriptor = socket.native_handle();
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_idle_s);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, keepalive_interval_s);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, keepalive_probes);
  set_option(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, user_timeout_ms);
}

void set_nagle(int descriptor, bool on) { set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, on ? 0 : 1); }

void acknowledge(int descriptor) { set_option(descriptor, IPPROTO_TCP, TCP_QUICKACK, 1); }

void set_congestion(int descriptor, const std::string& name) {
  if (name.empty()) return;
  static_cast<void>(
      setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())));
}

std::string congestion_of(int descriptor) {
  std::array<char, 32> name{};
  auto length = static_cast<socklen_t>(name.size() - 1);
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) != 0) return {};
  return name.data();
}

asio::error_code system_error(int error) { return {error, asio::error::get_system_category()}; }

std::string text_of(const asio::error_code& error) {
  return error.category() == asio::error::get_system_category() ? error_text(error.value()) : error.message();
}

bool is_scarcity(const asio::error_code& error) {
  switch (error.value()) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return true;
    default:
      return false;
  }
}

}  // namespace tutti::tcp
