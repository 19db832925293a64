#pragma once

namespace tutti {

// A `RegisteredMemory` keeps a region registered with a transport (`Transport::add_memory`) until it is
// destroyed. Any thread may destroy it, but only when no operation uses the region any more.
class RegisteredMemory {
 public:
  virtual ~RegisteredMemory() = default;
};

}  // namespace tutti
