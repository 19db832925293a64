#pragma once

#include <cstdint>

namespace tutti {

// A `DescriptorHandler` hears on the driving thread that its descriptor is ready; `events` are epoll's.
class DescriptorHandler {
 public:
  virtual ~DescriptorHandler() = default;
  virtual void on_ready(std::uint32_t events) = 0;
};

}  // namespace tutti
