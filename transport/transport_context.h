#pragma once

#include <cstdint>
#include <string>

#include "transport/driver/driver.h"
#include "transport/driver/event_loop.h"
#include "transport/transport.h"

namespace tutti {

// A `TransportContext` is what the parts of one transport share: their owner, and the driver that calls them.
// Each transport derives its own `Context` from it. After `start`, only the driving thread touches it.
//
// `timers` run only if the transport's `poll` calls `timers.run()`. The driver wakes up for them only if the
// transport's `next_deadline` returns `timers.next()`, or an earlier time. The functions `watch`, `rewatch`
// and `unwatch` need a driver, so call them only between `start` and `stop`.
struct TransportContext : EventLoop {
  // Makes the driver poll `transport` from now on.
  void start(Driver& by, TransportOwner& serving, Pollable& transport) {
    driver = &by;
    owner = &serving;
    driver->assert_driven();
    driver->add(transport);
  }
  // Stops the driver from polling `transport`. Does nothing if `start` was never called.
  void stop(Pollable& transport) {
    if (driver == nullptr) return;
    driver->assert_driven();
    driver->remove(transport);
    driver = nullptr;
  }

  Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) final {
    driver->assert_driven();
    return driver->watch(descriptor, events, handler);
  }
  void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) final {
    driver->assert_driven();
    driver->rewatch(descriptor, events, handler);
  }
  void unwatch(int descriptor) final {
    driver->assert_driven();
    driver->unwatch(descriptor);
  }

  const PeerInfo& peer(int rank) const { return owner->peer(rank); }
  std::string describe(int rank) const { return peer(rank).describe(); }
  // Returns whether a peer is on this machine, possibly in another container.
  bool same_host(int rank) const { return peer(rank).boot_id == peer(owner->rank()).boot_id; }

  Driver* driver = nullptr;  // null before `start` and after `stop`
  TransportOwner* owner = nullptr;
};

}  // namespace tutti
