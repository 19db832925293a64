#include "transport/tcp/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "core/error_text.h"
#include "transport/meeting/socket.h"

namespace tutti::tcp {
namespace {

// The control plane's heartbeats detect dead hosts. These options only ensure that no connection stays open
// forever. The times are this long because a peer that does not read for a while (in a debugger, or in a long
// computation without a background thread) is not dead.
constexpr int keepalive_idle_s = 30;
constexpr int keepalive_interval_s = 10;
constexpr int keepalive_probes = 6;
constexpr unsigned user_timeout_ms = 120'000;

asio::error_code last_error() { return system_error(errno); }

template <class T>
void set_option(int descriptor, int level, int name, T value) {
  // A refusal by the kernel is ignored, since none of these options is needed for correctness.
  static_cast<void>(setsockopt(descriptor, level, name, &value, sizeof value));
}

void prepare(int descriptor, const SocketSetup& setup) {
  if (setup.buffer > 0) {
    set_option(descriptor, SOL_SOCKET, SO_SNDBUF, setup.buffer);
    set_option(descriptor, SOL_SOCKET, SO_RCVBUF, setup.buffer);
  }
  set_congestion(descriptor, setup.congestion);
}

// `ask` is getsockname() or getpeername().
std::optional<Endpoint> endpoint_of(int descriptor, int (*ask)(int, sockaddr*, socklen_t*)) {
  Endpoint endpoint;
  auto length = static_cast<socklen_t>(endpoint.capacity());
  if (ask(descriptor, endpoint.data(), &length) != 0) return std::nullopt;
  endpoint.resize(length);
  return endpoint;
}

}  // namespace

Result<Descriptor> listen(const asio::ip::address& address, std::uint16_t first_port, std::uint16_t last_port,
                          const SocketSetup& setup) {
  return meeting::listen_on("tcp", address.to_string(), first_port, last_port,
                            [&setup](int descriptor) { prepare(descriptor, setup); });
}

Descriptor begin_connect(const Endpoint& endpoint, const SocketSetup& setup, asio::error_code& error) {
  const int family = endpoint.protocol().family();
  Descriptor made =
      Descriptor::guarded(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!made) {
    error = last_error();
    return made;
  }
  prepare(made.get(), setup);
  if (!setup.local.is_unspecified() && setup.local.is_v4() == endpoint.address().is_v4()) {
    const Endpoint from(setup.local, 0);
    set_option(made.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    static_cast<void>(::bind(made.get(), from.data(), static_cast<socklen_t>(from.size())));
  }
  // If a signal interrupts this call, the kernel still continues to connect.
  const int result = ::connect(made.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size()));
  error = result == 0 ? asio::error_code() : last_error();
  if (error == asio::error::interrupted) error = asio::error::in_progress;
  return made;
}

asio::error_code connect_result(int descriptor) {
  int result = 0;
  socklen_t length = sizeof result;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &result, &length) != 0) return last_error();
  return system_error(result);
}

std::optional<Endpoint> local_endpoint(int descriptor) { return endpoint_of(descriptor, ::getsockname); }

std::optional<Endpoint> remote_endpoint(int descriptor) { return endpoint_of(descriptor, ::getpeername); }

void tune(int descriptor) {
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_idle_s);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, keepalive_interval_s);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, keepalive_probes);
  set_option(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, user_timeout_ms);
}

void set_nagle(int descriptor, bool on) { set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, on ? 0 : 1); }

void acknowledge(int descriptor) { set_option(descriptor, IPPROTO_TCP, TCP_QUICKACK, 1); }

bool set_congestion(int descriptor, const std::string& name) {
  const auto length = static_cast<socklen_t>(name.size());
  return name.empty() || setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(), length) == 0;
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

bool is_scarcity(const asio::error_code& error) { return meeting::is_scarcity(error.value()); }

}  // namespace tutti::tcp
