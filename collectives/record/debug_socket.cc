#include "collectives/record/debug_socket.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <random>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <tutti/deadline.h>

#include "core/fork_guard.h"
#include "core/signals_blocked.h"
#include "transport/meeting/socket.h"

namespace tutti {

namespace {

constexpr std::string_view prefix = "tutti-debug-";
constexpr std::size_t longest_answer = std::size_t{64} << 20;
// A single `send` to a client that does not read waits for at most this long, since all other clients have to
// wait, too.
constexpr timeval client_patience{.tv_sec = 2, .tv_usec = 0};

struct Address {
  sockaddr_un socket{};
  socklen_t length;

  // A leading zero byte makes the address abstract.
  explicit Address(std::string_view name) {
    socket.sun_family = AF_UNIX;
    const std::size_t bytes = std::min(name.size(), sizeof socket.sun_path - 1);
    std::memcpy(socket.sun_path + 1, name.data(), bytes);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }
};

// Returns the number of the process at the other end if that process belongs to the same user; otherwise 0.
pid_t same_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  const bool known = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
  return known && peer.uid == geteuid() ? peer.pid : 0;
}

std::string text_of(int error) { return std::generic_category().message(error); }

// Processes in different containers may share a network namespace and have the same process number. So the
// name also contains random numbers.
std::string new_name() {
  std::random_device random;
  return std::string(prefix) + std::to_string(getpid()) + "-" + std::to_string(random()) +
         std::to_string(random());
}

}  // namespace

Result<std::unique_ptr<DebugServer>> DebugServer::create(std::function<std::string()> text) {
  const Address address(new_name());
  auto listener = Descriptor::guarded(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  auto stop = Descriptor::guarded(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener || !stop || bind(listener.get(), address.get(), address.length) != 0 ||
      listen(listener.get(), 16) != 0) {
    return Status(Code::unsupported, "an abstract unix socket: " + text_of(errno));
  }
  std::unique_ptr<DebugServer> server(new DebugServer(std::move(listener), std::move(stop), std::move(text)));
  if (server->thread_.joinable()) return server;
  return Status(Code::resource_exhausted, "cannot start a thread");
}

DebugServer::DebugServer(Descriptor listener, Descriptor stop, std::function<std::string()> text)
    : listener_(std::move(listener)),
      stop_(std::move(stop)),
      generation_(fork_generation()),
      text_(std::move(text)) {
  try {
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {  // `create` checks whether the thread runs
  }
}

DebugServer::~DebugServer() {
  if (generation_ == fork_generation()) {
    const std::uint64_t one = 1;
    while (write(stop_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    if (thread_.joinable()) thread_.join();
  } else {
    forget(thread_);
  }
}

void DebugServer::run() {
  pthread_setname_np(pthread_self(), "tutti-debug");
  for (;;) {
    pollfd watched[] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    poll(watched, 2, -1);
    if (watched[1].revents != 0) return;
    const Descriptor client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client) {
      answer(client.get());
    } else if (meeting::is_scarcity(errno)) {
      poll(&watched[1], 1, 100);  // the client stays in the queue, so polling the listener would not sleep
    }
  }
}

void DebugServer::answer(int client) const {
  if (same_user(client) == 0) return;
  setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &client_patience, sizeof client_patience);
  const std::string whole = text_();
  std::string_view left = whole;
  const Deadline deadline = Deadline::after(std::chrono::seconds(2 * client_patience.tv_sec));
  while (!left.empty() && !deadline.expired()) {
    const ssize_t sent = send(client, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::vector<DebugEndpoint> debug_endpoints() {
  std::vector<DebugEndpoint> found;
  std::ifstream table("/proc/net/unix");
  const std::string mark = "@" + std::string(prefix);
  for (std::string line; std::getline(table, line);) {
    const std::size_t at = line.find(mark);
    if (at == line.npos) continue;
    DebugEndpoint endpoint;
    endpoint.name = line.substr(at + 1);
    const char* const number = endpoint.name.data() + prefix.size();
    std::from_chars(number, endpoint.name.data() + endpoint.name.size(), endpoint.pid);
    // The kernel's table also lists the server's connections, under the server's name.
    const bool known =
        std::ranges::any_of(found, [&](const DebugEndpoint& other) { return other.name == endpoint.name; });
    if (!known) found.push_back(std::move(endpoint));
  }
  return found;
}

Result<DebugAnswer> ask(const DebugEndpoint& endpoint, std::chrono::milliseconds limit) {
  const Address address(endpoint.name);
  const Descriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!client || connect(client.get(), address.get(), address.length) != 0) {
    return Status(Code::unreachable, text_of(errno));
  }
  DebugAnswer answer;
  answer.pid = same_user(client.get());
  if (answer.pid == 0) return Status(Code::unauthenticated, "it belongs to another user");
  const Deadline deadline = Deadline::after(limit);
  while (answer.text.size() < longest_answer) {
    char bytes[65536];
    const ssize_t received = recv(client.get(), bytes, sizeof bytes, 0);
    if (received > 0) {
      answer.text.append(bytes, static_cast<std::size_t>(received));
      continue;
    }
    if (received == 0 && !answer.text.empty()) return answer;
    if (received == 0) return Status(Code::unreachable, "it closed the connection");
    if (errno != EAGAIN && errno != EINTR) return Status(Code::unreachable, text_of(errno));
    if (deadline.expired()) return Status(Code::timeout, "no answer: it is stopped");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
    pollfd watched{client.get(), POLLIN, 0};
    poll(&watched, 1, static_cast<int>(left.count()));
  }
  return Status(Code::protocol_error, "its answer does not end");
}

}  // namespace tutti
