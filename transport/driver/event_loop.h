#pragma once

#include <cstdint>

#include <tutti/status.h>

#include "transport/driver/descriptor_handler.h"
#include "transport/driver/timers.h"

namespace tutti {

// An `EventLoop` calls handlers when their descriptors are ready, and timers when their time has come.
// Transports use the driver's loop, which they reach through `TransportContext`. The control plane has a loop
// of another kind, around the system call poll(), on a separate thread. Only the thread that runs a loop may
// call the loop's functions.
class EventLoop {
 public:
  virtual ~EventLoop() = default;

  // Calls `handler` whenever one of `events` (epoll's flags) happens to the descriptor. The handler does not
  // learn which descriptor is ready. So each descriptor needs its own handler. There is one exception: two
  // descriptors may share a handler if they are watched for different events, since the handler then
  // recognises the descriptor by the events.
  virtual Status watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) = 0;
  // Changes the events or the handler of a descriptor that is watched.
  virtual void rewatch(int descriptor, std::uint32_t events, DescriptorHandler& handler) = 0;
  // Stops watching. It must be called before the descriptor is closed.
  virtual void unwatch(int descriptor) = 0;

  Timers timers;
};

}  // namespace tutti
