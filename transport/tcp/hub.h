#pragma once

#include <cstddef>
#include <memory>

#include <asio/io_context.hpp>

#include "transport/driver/driver.h"
#include "transport/driver/timers.h"
#include "transport/tcp/address.h"
#include "transport/tcp/congestion.h"
#include "transport/tcp/factory.h"
#include "transport/transport.h"

namespace tutti::tcp {

// A `Hub` is what the parts of one tcp transport share. Once started, only the driving thread touches it.
struct Hub {
  // Received bytes that do not go straight into place pass through here; a channel keeps nothing in it
  // between two calls, so one buffer serves all, and it is warm.
  static constexpr std::size_t scratch_bytes = 128 * 1024;

  explicit Hub(const Options& from)
      : options(from),
        congestion(from.congestion),
        scratch(new (std::align_val_t(64)) std::byte[scratch_bytes]) {}

  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(64)); }
  };

  // These are for the driving thread, as everything here.
  Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
    driver->assert_driven();
    return driver->watch(descriptor, events, handler);
  }
  void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
    driver->assert_driven();
    driver->rewatch(descriptor, events, handler);
  }
  // Whether a peer is on this machine, though perhaps in another container.
  bool same_host(int peer) const { return owner->peer(peer).boot_id == owner->peer(owner->rank()).boot_id; }
  void unwatch(int descriptor) {
    driver->assert_driven();
    driver->unwatch(descriptor);
  }

  const Options options;
  const Congestion congestion;
  asio::io_context io{ASIO_CONCURRENCY_HINT_UNSAFE};  // never run, see socket.h
  Timers timers;
  Address address;  // ours, as published
  std::unique_ptr<std::byte[], Free> scratch;
  Driver* driver = nullptr;
  TransportOwner* owner = nullptr;
  MessageLimits limits;
};

}  // namespace tutti::tcp
