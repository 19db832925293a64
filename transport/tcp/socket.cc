#include "transport/tcp/socket.h"

#include <array>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "transport/meeting/socket.h"

namespace tutti::tcp {
namespace {

// The control plane's heartbeats detect dead hosts. This option only ensures that no connection stays open
// forever. The time is long, since a peer that does not read for a while is not necessarily dead. It may be
// in a debugger, or in a long computation without a background thread.
constexpr int user_timeout_ms = 120'000;

void set_option(int descriptor, int level, int name, int value) {
  static_cast<void>(setsockopt(descriptor, level, name, &value, sizeof value));
}

}  // namespace

void tune(int descriptor) {
  meeting::tune(descriptor);
  set_option(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, user_timeout_ms);
}

void set_buffers(int descriptor, int bytes) {
  if (bytes == 0) return;
  set_option(descriptor, SOL_SOCKET, SO_SNDBUF, bytes);
  set_option(descriptor, SOL_SOCKET, SO_RCVBUF, bytes);
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

}  // namespace tutti::tcp
