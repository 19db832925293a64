#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <sys/socket.h>
#include <unistd.h>

#include "core/security/guard.h"
#include "tests/fuzz/input.h"

namespace tutti::fuzz {

// `Connection` is a pair of connected stream sockets. One end has a guard, and the other end can
// send any bytes.
struct Connection {
  int guarded = -1, other = -1;
  Connection() {
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    guarded = ends[0];
    other = ends[1];
  }
  ~Connection() {
    close(guarded);
    close(other);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void say(std::string_view bytes) {
    static_cast<void>(send(other, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  std::string hear() {
    std::string bytes(4096, '\0');
    const ssize_t got = recv(other, bytes.data(), bytes.size(), 0);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }
};

// Changes the bytes of one side, as an attacker in the path can.
inline void meddle(Input& input, std::string& bytes) {
  switch (input.byte() % 8) {
    case 0:
      if (!bytes.empty())
        bytes[input.number<std::uint16_t>() % bytes.size()] ^= static_cast<char>(input.byte());
      break;
    case 1:
      bytes.resize(std::min<std::size_t>(bytes.size(), input.number<std::uint16_t>()));
      break;
    case 2:
      bytes += input.text(input.byte());
      break;
    case 3:
      bytes.insert(0, input.text(input.byte()));
      break;
    default:
      break;
  }
}

constexpr int turns = 8;

inline bool goes_on(security::Guard::State state) {
  return state == security::Guard::State::reading || state == security::Guard::State::writing;
}

// `Meeting` holds the final states of two guards that have exchanged messages. An attacker may have changed
// those messages in transit.
struct Meeting {
  security::Guard::State left = security::Guard::State::reading;
  security::Guard::State right = security::Guard::State::reading;
  std::string said, heard;  // the bytes that `left` sent, and the bytes that `right` received
};
inline Meeting meet(Input& input, security::Guard& left, security::Guard& right) {
  Meeting meeting;
  Connection at_left, at_right;
  for (int turn = 0; turn < turns; ++turn) {
    if (goes_on(meeting.left)) meeting.left = left.advance(at_left.guarded);
    std::string bytes = at_left.hear();
    meeting.said += bytes;
    meddle(input, bytes);
    meeting.heard += bytes;
    at_right.say(bytes);
    if (goes_on(meeting.right)) meeting.right = right.advance(at_right.guarded);
    bytes = at_right.hear();
    meddle(input, bytes);
    at_left.say(bytes);
  }
  return meeting;
}
// Returns whether the right side received the bytes that the left side sent. Compares only the
// bytes that the guards check.
inline bool told_the_truth(const Meeting& meeting) {
  constexpr std::size_t judged = security::Guard::message_bytes;
  return meeting.heard.substr(0, judged) == meeting.said.substr(0, judged);
}

}  // namespace tutti::fuzz
