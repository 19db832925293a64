#pragma once

#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tutti/address.h>
#include <tutti/store_server.h>

#include "rendezvous/store/tcp/store_client.h"
#include "rendezvous/store/tcp/wire.h"

// This file provides a store's server, clients of this server, and connections of processes that are not
// clients.
namespace tutti::test {

inline Deadline ample() { return Deadline::after(std::chrono::seconds(60)); }

inline std::unique_ptr<tcp::StoreServer> serve(const tcp::StoreServerOptions& options = {}) {
  return tcp::StoreServer::create(options).take();
}

inline std::shared_ptr<Store> client_of(const tcp::StoreServer& server) {
  return tcp::connect_store(server.address(), server.port(), ample()).take();
}

// A `Stranger` is a connection of a process that is not a client. It can send any bytes.
class Stranger {
 public:
  explicit Stranger(const tcp::StoreServer& server) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress address = *parse_address(server.address(), server.port());
    EXPECT_EQ(connect(fd_, address.raw(), address.length), 0);
  }
  Stranger(const Stranger&) = delete;
  ~Stranger() { close(); }

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void say(const std::string& text) {
    static_cast<void>(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == 0);
  }
  void greet() {
    const store_wire::ClientHello hello;
    say(std::string(reinterpret_cast<const char*>(&hello), sizeof(hello)));
    char answer[sizeof(store_wire::ServerHello)];
    EXPECT_EQ(::recv(fd_, answer, sizeof(answer), MSG_WAITALL), static_cast<ssize_t>(sizeof(answer)));
  }
  // Returns true when the server closes the connection. Ignores all data that the server sends
  // before that.
  bool is_dropped() {
    const timeval limit = {60, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    char buffer[4096];
    ssize_t got = 0;
    while ((got = ::recv(fd_, buffer, sizeof(buffer), 0)) > 0) {
    }
    return got == 0 || errno == ECONNRESET;
  }

 private:
  int fd_;
};

inline std::string frame(const std::string& body) {
  const std::uint32_t length = store_wire::little_endian32(static_cast<std::uint32_t>(body.size()));
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + body;
}

inline bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace tutti::test
