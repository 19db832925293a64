#pragma once

#include <cstdint>
#include <string>

#include "transport/driver/driver.h"
#include "transport/driver/timers.h"
#include "transport/transport.h"

namespace tutti {

// A `TransportContext` is what the parts of one transport share: their owner, and the driver that calls them.
// Each transport derives its own `Context` from it. After `start`, only the driving thread touches it.
//
// `timers` run only if the transport's `poll` calls `timers.run()`. The driver wakes up for them only if the
// transport's `next_deadline` returns `timers.next()`, or an earlier time.
struct TransportContext {
  // Makes the driver poll `transport` from now on.
  void start(Driver& by, TransportOwner& serving, const MessageLimits& agreed, Pollable& transport) {
    driver = &by;
    owner = &serving;
    limits = agreed;
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

  // `watch` makes the driver call `handler` when the descriptor is ready (`Driver::watch`). The handler does
  // not learn which descriptor is ready. So a handler that watches several must tell them apart by their
  // events, or each descriptor needs its own handler. The functions `watch`, `rewatch` and `unwatch` need a
  // driver, so call them only between `start` and `stop`.
  Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
    driver->assert_driven();
    return driver->watch(descriptor, events, handler);
  }
  void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
    driver->assert_driven();
    driver->rewatch(descriptor, events, handler);
  }
  void unwatch(int descriptor) {
    driver->assert_driven();
    driver->unwatch(descriptor);
  }

  const PeerInfo& peer(int rank) const { return owner->peer(rank); }
  std::string describe(int rank) const { return peer(rank).describe(); }
  // Returns whether a peer is on this machine, possibly in another container.
  bool same_host(int rank) const { return peer(rank).boot_id == peer(owner->rank()).boot_id; }

  Timers timers;
  Driver* driver = nullptr;  // null before `start` and after `stop`
  TransportOwner* owner = nullptr;
  MessageLimits limits;
};

}  // namespace tutti
