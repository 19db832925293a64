#pragma once

#include <cstdint>

#include <tutti/status.h>

#include "transport/driver/descriptor_handler.h"
#include "transport/driver/timers.h"

namespace tutti {

// An `EventLoop` calls handlers when their descriptors are ready, and timers when their time has come. The
// transports call the driver, through `TransportContext`. The loop of the control plane runs on its own
// thread, and calls poll(). Only the thread that runs a loop may call the loop's functions.
class EventLoop {
 public:
  virtual ~EventLoop() = default;

  // Calls `handler` whenever one of `events` (epoll's flags) happens to the descriptor. The handler does not
  // learn which descriptor is ready. So each descriptor needs its own handler. There is one exception:
  // descriptors that are watched for different events may share a handler, which tells them apart by the
  // events.
  virtual Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) = 0;
  // Changes the events or the handler of a descriptor that is watched.
  virtual void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) = 0;
  // Stops watching. It must be called before the descriptor is closed.
  virtual void unwatch(int descriptor) = 0;

  Timers timers;
};

}  // namespace tutti
