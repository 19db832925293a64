#include "control/liveness/stream.h"

#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "core/error_text.h"

namespace tutti::liveness {
namespace {

// At most this many bytes are read at once.
constexpr std::size_t read_bytes = 64 * 1024;

Descriptor open_socket(int family) {
  return Descriptor::guarded(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void set_no_delay(int descriptor) {
  const int on = 1;
  static_cast<void>(setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

}  // namespace

Stream::Stream(meeting::Connection accepted) : connection_(std::move(accepted)), connected_(true) {
  set_no_delay(connection_.descriptor());
}

short Stream::events() const {
  if (connected_ && connection_.is_guarded()) return guard_writes_ ? POLLOUT : POLLIN;
  const bool to_write = !connected_ || !unsent_.empty();
  return static_cast<short>(POLLIN | (to_write ? POLLOUT : 0));
}

bool Stream::progress(short ready) {
  if (!connected_) {
    socklen_t length = sizeof error_;
    if (error_ == 0 && getsockopt(descriptor(), SOL_SOCKET, SO_ERROR, &error_, &length) != 0) error_ = errno;
    if (error_ != 0) return end(error_);
    if ((ready & POLLOUT) == 0) return true;
    connected_ = true;
  }
  if (connection_.is_guarded() && !pass_guard()) return why_.empty();
  flush();
  return receive();
}

// Returns whether the guard has let us through. If the guard has refused us, `why_` says why.
bool Stream::pass_guard() {
  using State = security::Guard::State;
  const State state = connection_.pass();
  guard_writes_ = state == State::writing;
  refused_by_guard_ = state == State::failed;
  if (refused_by_guard_) why_ = connection_.guard()->status().message();
  return state == State::done;
}

void Stream::flush() {
  while (connected() && !unsent_.empty()) {
    int error = 0;
    const std::size_t sent = connection_.write(std::as_bytes(std::span(unsent_)), error);
    if (sent == 0 && error != EAGAIN) unsent_.clear();  // the next read returns the reason
    if (sent == 0) return;
    unsent_.erase(0, sent);
  }
  if (!connected() || !finishing_ || finished_ || !unsent_.empty()) return;
  finished_ = true;
  shutdown(descriptor(), SHUT_WR);
}

bool Stream::receive() {
  std::array<char, read_bytes> buffer;
  do {
    int error = 0;
    const std::size_t got = connection_.read(std::as_writable_bytes(std::span(buffer)), error);
    if (got == 0) return error == EAGAIN || end(error);
    received_.append(buffer.data(), got);
  } while (connection_.has_pending());  // poll() does not report pending bytes
  return true;
}

bool Stream::end(int error) {
  refused_ = error == ECONNREFUSED;
  why_ = error == EPIPE ? "its control connection was closed without a goodbye" : error_text(error);
  return false;
}

std::uint16_t port_of(const Descriptor& listener) {
  SocketAddress address;
  address.length = sizeof address.storage;
  const auto raw = reinterpret_cast<sockaddr*>(&address.storage);
  return getsockname(listener.get(), raw, &address.length) == 0 ? address.port() : std::uint16_t{0};
}

bool Stream::rejected() const {
  return !connected_ && (error_ == EHOSTUNREACH || error_ == ENETUNREACH || error_ == EHOSTDOWN ||
                         error_ == ENETDOWN || error_ == EACCES || error_ == EPERM);
}

std::unique_ptr<Stream> connect_to(const SocketAddress& address, security::Guard guard) {
  Descriptor socket = open_socket(address.family());
  if (!socket) return nullptr;
  set_no_delay(socket.get());
  const bool begun = ::connect(socket.get(), address.raw(), address.length) == 0 || errno == EINPROGRESS ||
                     errno == EINTR;  // after a signal, the kernel keeps connecting
  return std::make_unique<Stream>(std::move(socket), std::move(guard), begun ? 0 : errno);
}

}  // namespace tutti::liveness
