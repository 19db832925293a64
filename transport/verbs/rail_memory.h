#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/stream/remote_memory.h"
#include "transport/verbs/memory.h"

namespace tutti::verbs {

// A `RailMemory` is the memory of this rank that is registered with all of its ports. A place in it has one
// key for each port, so that a peer can write there over any rail. Any thread may call these functions.
class RailMemory final : public RemoteMemory {
 public:
  // `domains` has a domain for each port, in the order of the ports, and at most `max_rails` of them.
  explicit RailMemory(const std::vector<SharedDomain>& domains);

  // Registers the region with all ports, or with none if one of them refuses.
  Result<std::unique_ptr<RegisteredMemory>> add(std::span<std::byte> region) override;
  std::optional<RemotePlace> find(std::span<const std::byte> memory) const override;
  // Returns the memory that is registered with one port.
  const Memory& of(std::size_t rail) const { return *memories_[rail]; }

 private:
  std::vector<std::shared_ptr<Memory>> memories_;
};

// Returns the key of a place for the port of its owner with that index.
std::uint32_t key_of(const RemotePlace& place, std::size_t rail);

}  // namespace tutti::verbs
