#include "rendezvous/store/tcp/stream.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "core/error_text.h"
#include "rendezvous/store/tcp/wire.h"

namespace tutti::store_wire {
namespace {

using std::chrono::milliseconds;

Status lost(const char* what, int error) {
  return Status(Code::peer_lost, std::string(what) + ": " + error_text(error));
}

// While a call waits for the other side, it checks at this interval whether it was interrupted. The
// interval matters only if the store does not answer. During a meeting, a rank splits a long wait into a
// series of short requests. As long as the store answers, an interrupt takes effect between two
// requests, and the connection remains usable.
constexpr milliseconds interrupt_interval{500};

int poll_milliseconds(Deadline deadline, bool interruptible) {
  const auto left = std::chrono::ceil<milliseconds>(deadline.remaining());
  const milliseconds longest = interruptible ? interrupt_interval : std::chrono::minutes(1);
  return static_cast<int>(std::min(left, longest).count());
}

// Returns whether the address is a loopback address that this host does not have. (A container or a network
// namespace may lack loopback addresses.) If so, trying again does not help. EADDRNOTAVAIL may also mean that
// no local port is free, but then the system has a route to the address.
bool is_own_lack(const SocketAddress& address, int error) {
  return address.is_loopback() &&
         (error == ENETUNREACH || (error == EADDRNOTAVAIL && !route_source(address)));
}

Status cannot_connect(const SocketAddress& address, int error) {
  const std::string text = "cannot connect to " + address.text() + ": " + error_text(error);
  if (error == EMFILE || error == ENFILE) return Status(Code::resource_exhausted, text);
  if (!is_own_lack(address, error)) return Status(Code::unreachable, text);
  return Status(Code::invalid_argument,
                text + ", since this host's loopback interface is down or has no address " + address.host() +
                    " (`ip link set lo up` brings it up)");
}

}  // namespace

void set_keepalive(int fd) {
  const int on = 1, idle_seconds = 15, interval_seconds = 5, probes = 3;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof(idle_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof(interval_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

Result<Stream> Stream::connect(const SocketAddress& address, Deadline deadline,
                               const std::function<bool()>& interrupted) {
  Stream stream(Descriptor(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (!stream.is_open()) return cannot_connect(address, errno);
  stream.ask_when_waiting(interrupted);
  const int on = 1;
  setsockopt(stream.socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  set_keepalive(stream.socket_.get());
  if (::connect(stream.socket_.get(), address.raw(), address.length) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return cannot_connect(address, errno);
    const Status waited = stream.wait_for(POLLOUT, deadline);
    if (waited.code() == Code::aborted) return waited;
    if (!waited.ok()) return cannot_connect(address, ETIMEDOUT);
    int error = 0;
    socklen_t length = sizeof(error);
    getsockopt(stream.socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return cannot_connect(address, error);
  }
  // A socket that connects to an ephemeral port of this host may become connected to itself (simultaneous
  // open).
  const SocketAddress local = stream.local_address();
  if (local.port() == address.port() && local.host() == address.host())
    return cannot_connect(address, ECONNREFUSED);
  return stream;
}

Status Stream::pass(security::Guard& guard, Deadline deadline) {
  using State = security::Guard::State;
  for (;;) {
    const State state = guard.advance(socket_.get());
    if (state == State::done) {
      stream_.encrypt(guard.take_tls());
      return {};
    }
    if (state == State::failed) return guard.status();
    const short events = state == State::writing ? POLLOUT : POLLIN;
    if (Status status = wait_for(events, deadline); !status.ok()) return status;
  }
}

void Stream::close() {
  stream_.encrypt(nullptr);
  socket_.reset();
}

Status Stream::wait_for(short events, Deadline deadline) const {
  pollfd entry = {socket_.get(), events, 0};
  for (;;) {
    const int ready = ::poll(&entry, 1, poll_milliseconds(deadline, interrupted_ != nullptr));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return lost("poll", errno);
    if (deadline.expired()) return Status(Code::timeout, "the other side does not answer");
    if (interrupted_ && interrupted_())
      return Status(Code::aborted, "interrupted while the other side did not answer");
  }
}

Status Stream::send(const void* data, std::size_t bytes, Deadline deadline) {
  std::span<const std::byte> rest(static_cast<const std::byte*>(data), bytes);
  while (!rest.empty()) {
    int error = 0;
    rest = rest.subspan(stream_.write(socket_.get(), rest, error));
    if (error == 0) continue;
    if (error != EAGAIN) return lost("send", error);
    if (Status status = wait_for(POLLOUT, deadline); !status.ok()) return status;
  }
  return {};
}

Status Stream::receive(void* data, std::size_t bytes, Deadline deadline) {
  std::span<std::byte> rest(static_cast<std::byte*>(data), bytes);
  while (!rest.empty()) {
    const Result<std::size_t> got = receive_some(rest, deadline);
    if (!got.ok()) return got.status();
    rest = rest.subspan(*got);
  }
  return {};
}

Result<std::size_t> Stream::receive_some(std::span<std::byte> place, Deadline deadline) {
  for (;;) {
    int error = 0;
    const std::size_t got = stream_.read(socket_.get(), place, error);
    if (error == 0) return got;
    if (error == EPIPE) return Status(Code::peer_lost, "the connection was closed by the other side");
    if (error != EAGAIN) return lost("receive", error);
    if (Status status = wait_for(POLLIN, deadline); !status.ok()) return status;
  }
}

Status Stream::receive(std::string& data, std::size_t bytes, Deadline deadline) {
  while (bytes > 0) {
    const std::size_t step = std::min(bytes, receive_step);
    const std::size_t before = data.size();
    data.resize(before + step);
    if (Status status = receive(data.data() + before, step, deadline); !status.ok()) return status;
    bytes -= step;
  }
  return {};
}

SocketAddress Stream::local_address() const {
  SocketAddress address;
  address.length = sizeof(address.storage);
  if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0)
    return {};
  return address;
}

}  // namespace tutti::store_wire
