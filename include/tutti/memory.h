#pragma once

#include <cstdint>
#include <string>

#include <tutti/export.h>

namespace tutti {

// A `Memory` says in which memory a buffer lies: the host's or a CUDA device's.
//
// tutti's transports read and write host memory only. If CUDA's driver is found (docs/gpu.md), NCCL carries
// out collectives on device memory, or tutti copies their data to and from the host. tutti also copies
// messages. If neither is possible, such a collective ends with `unsupported` on all ranks, and a send or
// receive of device memory ends with `unsupported` at once, on the calling rank only. In both cases nothing
// touches the memory. The two ends of a message may use different kinds of memory. Memory that both the host
// and a device can access may be passed as either.
class Memory {
 public:
  enum class Kind : std::uint8_t { host, cuda };

  // Names the memory of the host.
  constexpr Memory() = default;
  // Names the memory of a device. `device` is its number in CUDA, at most `max_device`.
  static constexpr Memory cuda(int device) { return Memory(Kind::cuda, device); }
  static constexpr int max_device = (1 << 24) - 1;

  constexpr Kind kind() const { return static_cast<Kind>(bits_ >> 24); }
  // Returns the device's number; 0 for the host.
  constexpr int device() const { return static_cast<int>(bits_ & max_device); }
  friend constexpr bool operator==(const Memory&, const Memory&) = default;

 private:
  constexpr Memory(Kind kind, int device)
      : bits_(static_cast<std::uint32_t>(kind) << 24 | static_cast<std::uint32_t>(device)) {}
  std::uint32_t bits_ = 0;  // the kind in the highest byte, and the number of the device
};

// Returns "memory of the host" or "memory of CUDA device 3".
TUTTI_API std::string to_string(const Memory& memory);

}  // namespace tutti
