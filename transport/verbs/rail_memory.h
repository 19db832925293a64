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

// A `RailMemory` is the memory of this rank that is registered with all of its ports. Any thread may call
// these functions.
class RailMemory final : public RemoteMemory {
 public:
  // `domains` has a domain for each port, in the order of the ports, and at most `max_rails` of them.
  explicit RailMemory(const std::vector<SharedDomain>& domains);

  // These register the region with all ports, or with none if one of them refuses.
  Result<std::unique_ptr<RegisteredMemory>> add(std::span<std::byte> region) override;
  Result<std::unique_ptr<RegisteredMemory>> add_staging(std::span<std::byte> region) override;
  Result<std::unique_ptr<RegisteredMemory>> add_writable(std::span<std::byte> region);
  // Finds only memory that peers can write into over all ports without a window. The place has one key for
  // each port (`key_of`).
  std::optional<RemotePlace> find(std::span<const std::byte> memory) const override;
  // Returns the memory that is registered with one port.
  const Memory& of(std::size_t rail) const { return *memories_[rail]; }

  // Returns the same memory for a channel with several rails. Its staging chunks can be written over all
  // ports, since a window belongs to a single queue pair.
  RemoteMemory& for_several_rails() { return several_; }

 private:
  struct ForSeveralRails final : RemoteMemory {
    explicit ForSeveralRails(RailMemory& of) : memory(of) {}
    Result<std::unique_ptr<RegisteredMemory>> add(std::span<std::byte> region) override {
      return memory.add(region);
    }
    Result<std::unique_ptr<RegisteredMemory>> add_staging(std::span<std::byte> region) override {
      return memory.add_writable(region);
    }
    std::optional<RemotePlace> find(std::span<const std::byte> region) const override {
      return memory.find(region);
    }
    RailMemory& memory;
  };

  std::vector<std::shared_ptr<Memory>> memories_;
  ForSeveralRails several_{*this};
};

// Returns the key of a place for the port of its owner with that index.
std::uint32_t key_of(const RemotePlace& place, std::size_t rail);

}  // namespace tutti::verbs
