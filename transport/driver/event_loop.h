#pragma once

#include <cstdint>

#include <tutti/status.h>

#include "transport/driver/descriptor_handler.h"
#include "transport/driver/timers.h"

namespace tutti {

// An `EventLoop` calls handlers when their descriptors are ready, and timers when their time has come. For
// transports, the driver is the loop (`TransportContext`). The control plane has its own thread, whose loop
// calls poll(). Only the thread that runs the loop may call it.
class EventLoop {
 public:
  virtual ~EventLoop() = default;

  // Calls `handler` whenever one of `events` (epoll's flags) happens to the descriptor. The handler does not
  // learn which descriptor is ready. So a handler of several descriptors must tell them apart by their
  // events; otherwise each descriptor needs its own handler.
  virtual Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) = 0;
  // Changes the events or the handler of a descriptor that is watched.
  virtual void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) = 0;
  // Stops watching. It must be called before the descriptor is closed.
  virtual void unwatch(int descriptor) = 0;

  Timers timers;
};

}  // namespace tutti
