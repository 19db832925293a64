#pragma once

#include <cstdint>

namespace tutti {

// A `DescriptorHandler` is called on the driving thread when its descriptor is ready. `events` are epoll's
// event flags.
class DescriptorHandler {
 public:
  virtual ~DescriptorHandler() = default;
  virtual void on_ready(std::uint32_t events) = 0;
};

}  // namespace tutti
