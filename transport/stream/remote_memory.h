#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include <tutti/status.h>

#include "transport/registered_memory.h"
#include "transport/stream/frame.h"

namespace tutti {

// A `RemoteMemory` is the memory of this rank that peers may write into. A transport that writes remotely
// implements it (docs/seams/grants.md). Any thread may call it.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  // Registers a region. It stays registered until the returned object is destroyed.
  virtual Result<std::unique_ptr<RegisteredMemory>> add(std::span<std::byte> region) = 0;
  // Registers memory for staging chunks. The permit for these chunks lasts as long as the pipe (permits.h).
  virtual Result<std::unique_ptr<RegisteredMemory>> add_staging(std::span<std::byte> region) {
    return add(region);
  }
  // Registers memory for one operation, if that takes less time than copying it. Otherwise, or if the memory
  // cannot be registered, returns null.
  enum class Use { sending, receiving };
  virtual std::unique_ptr<RegisteredMemory> add_briefly(std::span<const std::byte>, Use) { return nullptr; }
  // Returns whether a region that was registered by `add` contains all of `memory`.
  virtual bool is_registered(std::span<const std::byte> memory) const { return find(memory).has_value(); }
  // Returns the place by which peers address the first byte of `memory`. The place of a later byte has the
  // same key, and its address is greater by the distance between the two bytes. Returns nothing if no single
  // registered region contains all of `memory`.
  virtual std::optional<RemotePlace> find(std::span<const std::byte> memory) const = 0;
};

}  // namespace tutti
