#include "tests/support/tcp_proxy.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tutti::test {

namespace {

constexpr std::size_t remembered = 4096;
constexpr int look_again_ms = 20;
constexpr std::chrono::milliseconds retransmission{200};

sockaddr_in address_of(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

int listen_at(const std::string& host, std::uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = address_of(host, port);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      listen(listener, 64) == 0)
    return listener;
  close(listener);
  return -1;
}

bool send_all(int to, const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t sent = send(to, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    count -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

int connect_to(const std::string& host, std::uint16_t port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const sockaddr_in address = address_of(host, port);
  if (connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return descriptor;
  close(descriptor);
  return -1;
}

struct TcpProxy::Connection {
  int client = -1, server = -1;
  Record record;
  std::thread there, back;
};

TcpProxy::TcpProxy(const std::string& from, const std::string& to, const std::vector<std::uint16_t>& ports,
                   Weather& weather)
    : to_(to), ports_(ports), weather_(weather) {
  for (const std::uint16_t port : ports) {
    listeners_.push_back(listen_at(from, port));
    if (listeners_.back() < 0) problem_ = "cannot listen on " + from + ": " + std::strerror(errno);
  }
  thread_ = std::thread([this] { accept_all(); });
}

TcpProxy::~TcpProxy() {
  over_ = true;
  thread_.join();
  for (const auto& connection : connections_) {
    shutdown(connection->client, SHUT_RDWR);
    shutdown(connection->server, SHUT_RDWR);
    connection->there.join();
    connection->back.join();
    close(connection->client);
    close(connection->server);
  }
  for (const int listener : listeners_) close(listener);
}

void TcpProxy::accept_all() {
  while (!over_) {
    std::vector<pollfd> ready;
    for (const int listener : listeners_) ready.push_back({listener, POLLIN, 0});
    poll(ready.data(), ready.size(), look_again_ms);
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if ((ready[i].revents & POLLIN) != 0) accept_one(i);
    }
  }
}

void TcpProxy::accept_one(std::size_t listener) {
  const int client = accept4(listeners_[listener], nullptr, nullptr, SOCK_CLOEXEC);
  const int server = connect_to(to_, ports_[listener]);
  // Closing the connection shows the client that the port has no listener.
  if (client < 0 || server < 0) {
    if (client >= 0) close(client);
    if (server >= 0) close(server);
    return;
  }
  const int yes = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  auto connection = std::make_unique<Connection>();
  Connection& made = *connection;
  made.client = client;
  made.server = server;
  made.record.port = ports_[listener];
  made.there = std::thread([this, &made] { pump(made, made.client, made.server, &Record::said); });
  made.back = std::thread([this, &made] { pump(made, made.server, made.client, &Record::answered); });
  const std::lock_guard lock(mutex_);
  connections_.push_back(std::move(connection));
}

// Forwards the bytes of one direction until that direction ends at one side, and then ends it at the other
// side too.
void TcpProxy::pump(Connection& connection, int from, int to, std::string Record::*record) {
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t got = recv(from, bytes.data(), bytes.size(), 0);
    while (weather_.cut && !over_) std::this_thread::sleep_for(std::chrono::milliseconds(look_again_ms));
    if (got <= 0) break;
    const auto count = static_cast<std::size_t>(got);
    {
      const std::lock_guard lock(mutex_);
      std::string& text = connection.record.*record;
      text.append(bytes.data(), std::min(count, remembered - std::min(remembered, text.size())));
    }
    const std::uint64_t number = pieces_.fetch_add(1);
    const int jitter = weather_.jitter_us, loss = weather_.loss;
    const int more = jitter == 0 ? 0 : static_cast<int>(number * 7919 % static_cast<std::uint64_t>(jitter));
    std::this_thread::sleep_for(std::chrono::microseconds(weather_.delay_us + more));
    if (loss != 0 && number % static_cast<std::uint64_t>(loss) == 0)
      std::this_thread::sleep_for(retransmission);
    if (!send_all(to, bytes.data(), count)) break;
  }
  shutdown(to, SHUT_WR);
  shutdown(from, SHUT_RD);
}

std::vector<TcpProxy::Record> TcpProxy::records() const {
  const std::lock_guard lock(mutex_);
  std::vector<Record> all;
  for (const auto& connection : connections_) all.push_back(connection->record);
  return all;
}

}  // namespace tutti::test
