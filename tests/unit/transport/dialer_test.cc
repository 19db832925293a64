// Tests the attempts to connect to a peer over TCP.
#include "transport/meeting/dialer.h"

#include <chrono>

#include <gtest/gtest.h>

#include "tests/unit/transport/driver_fixtures.h"
#include "tests/unit/transport/stream_pair.h"
#include "transport/meeting/socket.h"

namespace tutti::meeting {
namespace {

struct NoTransport final : Pollable {
  bool poll() override { return false; }
};

struct NoConnection final : DialerEvents {
  Descriptor dial(const SocketAddress& endpoint, int& error) override {
    return begin_connect(endpoint, error);
  }
  security::Guard on_reached(int, Deadline limit) override {
    return security::Guard::connecting(nullptr, {security::Service::data, 0, 1}, limit);
  }
  void on_passed(Connection) override {}
  void on_dial_failed(const Status&) override {}
};

TEST(Dialer, IsNotInProgressOnceItIsStopped) {
  const Descriptor listener = listen_on("test", "127.0.0.1", 0, 0).take();
  Driver driver(without_background());
  const DriverGuard guard(driver);
  NoTransport transport;
  TestOwner owner(0);
  NoConnection events;
  TransportContext context;
  context.start(driver, owner, transport);
  {
    Dialer dialer(context, 1, {*local_address(listener.get())}, {.timeout = 1h, .step = 1h}, events);
    EXPECT_FALSE(dialer.in_progress());
    dialer.start();
    EXPECT_TRUE(dialer.in_progress());
    dialer.stop();
    EXPECT_FALSE(dialer.in_progress());
  }
  context.stop(transport);
}

}  // namespace
}  // namespace tutti::meeting
