#pragma once

#include <cstddef>

namespace tutti {

// An `AllocatedMemory` is memory of a device that an offload has allocated (`Offload::allocate`).
// Its destructor frees the memory. The destructor may wait for the device, so it must not run on a
// driving thread.
class AllocatedMemory {
 public:
  virtual ~AllocatedMemory() = default;
  virtual std::byte* data() const = 0;
  // Returns whether the offload's library has registered the memory, so that collectives can work on it in
  // place.
  virtual bool registered() const = 0;
};

}  // namespace tutti
