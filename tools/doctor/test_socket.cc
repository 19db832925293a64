#include "tools/doctor/test_socket.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <poll.h>
#include <sys/socket.h>

#include "core/error_text.h"

namespace tutti::tools::doctor {
namespace {

Status lost(const std::string& why) { return Status(Code::peer_lost, why); }

}  // namespace

Status TestSocket::await(short events, Deadline deadline) const {
  pollfd watched[] = {{socket_.get(), events, 0}, {stop_, POLLIN, 0}};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    const int ready = poll(watched, 2, static_cast<int>(std::min<std::int64_t>(left, 1'000'000)));
    if (ready < 0 && errno != EINTR) return lost(error_text(errno));
    if (ready > 0 && watched[1].revents != 0) return lost("stopped");
    if (ready > 0) return {};
    if (deadline.expired()) return Status(Code::timeout, "timed out");
  }
}

int TestSocket::await_connection(Deadline deadline) const {
  if (!await(POLLOUT, deadline).ok()) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

Status TestSocket::send(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return lost(error_text(errno));
    if (const Status status = await(POLLOUT, deadline); !status.ok()) return status;
  }
  return {};
}

Result<std::size_t> TestSocket::receive_some(std::span<char> bytes, Deadline deadline) {
  for (;;) {
    const ssize_t received = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (received >= 0) return static_cast<std::size_t>(received);
    if (errno != EAGAIN && errno != EINTR) return lost(error_text(errno));
    if (const Status status = await(POLLIN, deadline); !status.ok()) return status;
  }
}

Status TestSocket::receive(std::span<char> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const Result<std::size_t> received = receive_some(bytes, deadline);
    if (!received.ok()) return received.status();
    if (*received == 0) return lost("the connection has ended");
    bytes = bytes.subspan(*received);
  }
  return {};
}

void TestSocket::finish() { shutdown(socket_.get(), SHUT_WR); }

std::string header_of(char kind, std::size_t bytes) { return kind + to_bytes<header_bytes - 1>(bytes); }

std::uint64_t from_bytes(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

}  // namespace tutti::tools::doctor
