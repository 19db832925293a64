#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <utility>

#include "transport/stream/remote_memory.h"
#include "transport/verbs/domain.h"

namespace tutti::verbs {

// A `Region` is memory that a device may read and write. After the destructor, the device can no longer do
// that.
class Region {
 public:
  // Fails with `resource_exhausted`. If the limit of locked memory is the likely cause, the message names
  // that limit.
  static Result<std::unique_ptr<Region>> add(SharedDomain domain, std::span<std::byte> memory, int access);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::uint32_t local_key() const { return region_->lkey; }
  std::uint32_t remote_key() const { return region_->rkey; }

 private:
  Region(SharedDomain domain, ibv_mr* region) : domain_(std::move(domain)), region_(region) {}

  const SharedDomain domain_;
  ibv_mr* const region_;
};

// A `Memory` is the memory of this rank that is registered with the device for large messages: peers can
// write into it, and the device reads it when this rank sends. Any thread may call these functions.
class Memory final : public RemoteMemory, public std::enable_shared_from_this<Memory> {
 public:
  explicit Memory(SharedDomain domain) : domain_(std::move(domain)) {}

  Result<std::unique_ptr<RegisteredMemory>> add(std::span<std::byte> region) override;
  std::optional<RemotePlace> find(std::span<const std::byte> memory) const override;
  // Returns the key by which the device reads `memory`, or nothing if no single region contains all of it.
  std::optional<std::uint32_t> local_key(std::span<const std::byte> memory) const;

 private:
  class Registration;
  struct Entry {
    std::span<const std::byte> memory;
    std::unique_ptr<Region> region;
  };

  const Region* containing(std::span<const std::byte> memory) const;

  const SharedDomain domain_;
  mutable std::shared_mutex mutex_;
  std::uint64_t added_ = 0;
  std::map<std::uint64_t, Entry> entries_;  // in the order of registration
};

}  // namespace tutti::verbs
