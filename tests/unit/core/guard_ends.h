#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/security/guard.h"

// These helpers are for tests of two guards and the connection between them.
namespace tutti::security {

struct Connection {
  int left = -1, right = -1;

  explicit Connection(int type = SOCK_STREAM) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    left = ends[0];
    right = ends[1];
  }
  ~Connection() {
    close(left);
    close(right);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
};

// Advances both guards in turn, 20 times each, which is more than any exchange needs.
inline void meet(Connection& connection, Guard& connects, Guard& accepts) {
  for (int turn = 0; turn < 20; ++turn) {
    connects.advance(connection.left);
    accepts.advance(connection.right);
  }
}

inline std::string receive_all(int socket) {
  std::string text(4096, '\0');
  const ssize_t got = recv(socket, text.data(), text.size(), MSG_DONTWAIT);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

inline void send_all(int socket, const std::string& text) {
  ASSERT_EQ(send(socket, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

// A `Recording` records everything that the two guards send to each other. `change` may modify each message
// on its way.
struct Recording {
  std::vector<std::string> to_right, to_left;

  using Change = std::function<void(std::string&)>;

  void run(Guard& connects, Guard& accepts, Connection& left, Connection& right, const Change& change = {}) {
    for (int turn = 0; turn < 20; ++turn) {
      connects.advance(left.left);
      pass(left.right, right.left, to_right, change);
      accepts.advance(right.right);
      pass(right.left, left.right, to_left, change);
    }
  }
  void run(Guard& connects, Guard& accepts, const Change& change = {}) {
    Connection left, right;
    run(connects, accepts, left, right, change);
  }
  static void pass(int from, int to, std::vector<std::string>& log, const Change& change) {
    std::string text = receive_all(from);
    if (text.empty()) return;
    log.push_back(text);
    if (change) change(text);
    send_all(to, text);
  }
};

}  // namespace tutti::security
