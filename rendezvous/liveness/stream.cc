#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tutti/rendezvous/liveness/stream.h>
#include <tutti/transport/fork_guard.h>

namespace tutti::liveness {
namespace {

constexpr int backlog = 1024;
// Read in one turn; more is read in the next one.
constexpr std::size_t read_bytes = 64 * 1024;

std::string text_of(int error) { return std::strerror(error); }

int open_socket(int family) { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

void set_no_delay(int descriptor) {
  const int on = 1;
  static_cast<void>(setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

}  // namespace

Descriptor::Descriptor(int descriptor) : descriptor_(descriptor) {
  if (descriptor_ >= 0) guard_descriptor(descriptor_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Descriptor::~Descriptor() { close(); }

void Descriptor::close() {
  if (descriptor_ < 0) return;
  release_descriptor(descriptor_);
  ::close(std::exchange(descriptor_, -1));
}

short Stream::events() const {
  const bool to_write = !connected_ || !unsent_.empty();
  return static_cast<short>(POLLIN | (to_write ? POLLOUT : 0));
}

bool Stream::progress(short ready) {
  if (!connected_) {
    socklen_t length = sizeof error_;
    if (error_ == 0 && getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error_, &length) != 0) error_ = errno;
    if (error_ != 0) return end(error_);
    if ((ready & POLLOUT) == 0) return true;
    connected_ = true;
  }
  flush();
  return receive();
}

void Stream::flush() {
  while (connected_ && !unsent_.empty()) {
    const ssize_t sent = send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) unsent_.clear();  // reading tells why
    if (sent < 0) return;
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  if (!connected_ || !finishing_ || finished_ || !unsent_.empty()) return;
  finished_ = true;
  shutdown(socket_.get(), SHUT_WR);
}

bool Stream::receive() {
  std::array<char, read_bytes> buffer;
  for (;;) {
    const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got > 0) {
      received_.append(buffer.data(), static_cast<std::size_t>(got));
      return true;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    return end(got == 0 ? 0 : errno);
  }
}

bool Stream::end(int error) {
  refused_ = error == ECONNREFUSED;
  why_ = error == 0 ? "its control connection was closed without a goodbye" : text_of(error);
  return false;
}

Result<Descriptor> listen_on(const std::string& host, std::uint16_t first_port, std::uint16_t last_port) {
  int error = EINVAL;
  for (std::uint32_t port = first_port; port <= std::max(first_port, last_port); ++port) {
    const auto address = parse_address(host, static_cast<std::uint16_t>(port));
    if (!address) break;
    Descriptor socket(open_socket(address->family()));
    const int on = 1;
    if (port != 0) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->family() == AF_INET6) setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (socket && bind(socket.get(), address->raw(), address->length) == 0 &&
        listen(socket.get(), backlog) == 0) {
      return socket;
    }
    error = errno;
    if (error != EADDRINUSE && error != EACCES) break;
  }
  return Status(error == EMFILE || error == ENFILE ? Code::resource_exhausted : Code::invalid_argument,
                "control connections: cannot listen on " + host + ": " + text_of(error));
}

std::uint16_t port_of(const Descriptor& listener) {
  SocketAddress address;
  address.length = sizeof address.storage;
  const auto raw = reinterpret_cast<sockaddr*>(&address.storage);
  return getsockname(listener.get(), raw, &address.length) == 0 ? address.port() : std::uint16_t{0};
}

std::unique_ptr<Stream> accept_from(const Descriptor& listener, bool& scarce) {
  int descriptor = -1;
  do {
    descriptor = accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  } while (descriptor < 0 && (errno == EINTR || errno == ECONNABORTED));
  scarce = descriptor < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
  if (descriptor < 0) return nullptr;
  set_no_delay(descriptor);
  return std::make_unique<Stream>(Descriptor(descriptor), true);
}

std::unique_ptr<Stream> connect_to(const SocketAddress& address) {
  Descriptor socket(open_socket(address.family()));
  if (!socket) return nullptr;
  set_no_delay(socket.get());
  const bool begun = ::connect(socket.get(), address.raw(), address.length) == 0 || errno == EINPROGRESS ||
                     errno == EINTR;  // then it goes on by itself
  return std::make_unique<Stream>(std::move(socket), false, begun ? 0 : errno);
}

}  // namespace tutti::liveness
