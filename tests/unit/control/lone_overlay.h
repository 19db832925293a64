#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "control/liveness/overlay.h"
#include "transport/meeting/socket.h"

namespace tutti::liveness {

// `LoneOverlay` runs the overlay of one rank on a clock that the test sets. The test plays the other ranks.
class LoneOverlay {
 public:
  LoneOverlay(OverlayOptions options, ControlEvents& events) {
    auto listener = meeting::listen_on("control", "127.0.0.1", 0, 0).take();
    port = port_of(listener);
    overlay = std::make_unique<Overlay>(std::move(options), std::move(listener), events);
    overlay->start(now);
  }
  // Advances the clock by `passed`, and lets the overlay do its work once.
  void turn(std::chrono::milliseconds passed = std::chrono::milliseconds(0)) {
    now += passed;
    std::vector<pollfd> waits;
    overlay->collect(waits);
    poll(waits.data(), waits.size(), 0);
    overlay->run(waits, now);
  }

  Clock::time_point now = Clock::now();
  std::uint16_t port = 0;
  std::unique_ptr<Overlay> overlay;
};

// An `Attempt` is an overlay's attempt to connect, with the test's end of that connection.
struct Attempt {
  SocketAddress address;
  Descriptor end;
};

// Returns a function for `OverlayOptions::connect`, which adds each attempt to `attempts`. If `error` is not
// 0, each attempt fails with that error.
inline auto connect_to_test(std::vector<Attempt>& attempts, int error = 0) {
  return [&attempts, error](const SocketAddress& address, security::Guard guard) {
    int both[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
    attempts.push_back({address, Descriptor(both[1])});
    return std::make_unique<Stream>(Descriptor(both[0]), std::move(guard), error);
  };
}

// Sends `bytes` to the overlay at the other end.
inline void say(const Descriptor& end, const std::string& bytes) {
  EXPECT_EQ(send(end.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

// Returns the bytes that the overlay at the other end has sent since the last call.
inline std::string hear(const Descriptor& end) {
  std::string bytes(65536, '\0');
  const ssize_t got = recv(end.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace tutti::liveness
