#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <utility>

#include "transport/stream/remote_memory.h"
#include "transport/verbs/domain.h"

namespace tutti::verbs {

// A `Region` is memory that a device may read and write. Once the destructor has run, the device can no
// longer access the memory.
class Region {
 public:
  // If the process cannot read and write the memory itself, as with memory of a GPU, fails with
  // `unsupported`. Every other failure is `resource_exhausted`. If the limit of locked memory is the likely
  // cause, the message names that limit.
  static Result<std::unique_ptr<Region>> add(SharedDomain domain, std::span<std::byte> memory, int access);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::uint32_t local_key() const { return region_->lkey; }
  std::uint32_t remote_key() const { return region_->rkey; }
  ibv_mr* raw() const { return region_; }
  // Returns whether peers can write into the memory with its remote key.
  bool is_writable() const { return (access_ & IBV_ACCESS_REMOTE_WRITE) != 0; }

 private:
  Region(SharedDomain domain, ibv_mr* region, int access)
      : domain_(std::move(domain)), region_(region), access_(access) {}

  const SharedDomain domain_;
  ibv_mr* const region_;
  const int access_;
};

// A `Memory` is the memory of this rank that is registered with the device for large messages. The device
// reads it when this rank sends, and peers can write into parts of it. If the device has memory windows,
// peers write only into what a window permits. Otherwise they write into staging chunks and into memory that
// is registered for one receive. Memory from `add_writable` needs no window in either case. Any thread may
// call these functions.
class Memory final : public RemoteMemory, public std::enable_shared_from_this<Memory> {
 public:
  // `add_briefly` registers memory of at least `register_from` bytes.
  explicit Memory(SharedDomain domain, std::size_t register_from = std::numeric_limits<std::size_t>::max())
      : domain_(std::move(domain)), register_from_(register_from) {}

  Result<std::unique_ptr<RegisteredMemory>> add(std::span<std::byte> region) override;
  Result<std::unique_ptr<RegisteredMemory>> add_staging(std::span<std::byte> region) override;
  std::unique_ptr<RegisteredMemory> add_briefly(std::span<const std::byte> memory, Use use) override;
  // Registers memory for one operation, with these access rights. Returns null if the device refuses.
  std::unique_ptr<RegisteredMemory> add_brief(std::span<const std::byte> memory, int access);
  // Registers memory into which peers can write without a window, as long as it is registered.
  Result<std::unique_ptr<RegisteredMemory>> add_writable(std::span<std::byte> region) {
    return add(region, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  }
  bool is_registered(std::span<const std::byte> memory) const override {
    return region_of(memory, nullptr) != nullptr;
  }
  // Finds only memory that peers can write into without a window.
  std::optional<RemotePlace> find(std::span<const std::byte> memory) const override;
  // Returns the region that contains all of `memory`, or null if there is none. If `own` is not null, it is
  // the registration of an operation (`add_briefly`), and this function returns the region of that
  // registration. The region exists at least as long as all operations that use the memory.
  const Region* region_of(std::span<const std::byte> memory, const RegisteredMemory* own) const;

 private:
  class Registration;
  class Brief;
  struct Entry {
    std::span<const std::byte> memory;
    std::unique_ptr<Region> region;
  };

  Result<std::unique_ptr<RegisteredMemory>> add(std::span<std::byte> region, int access);
  // Returns the access rights of staging chunks, and of memory that is registered for one receive.
  int brief_access() const {
    return IBV_ACCESS_LOCAL_WRITE | (domain_->has_windows() ? IBV_ACCESS_MW_BIND : IBV_ACCESS_REMOTE_WRITE);
  }
  const Region* containing(std::span<const std::byte> memory) const;

  const SharedDomain domain_;
  const std::size_t register_from_;
  mutable std::shared_mutex mutex_;
  std::uint64_t added_ = 0;
  std::map<std::uint64_t, Entry> entries_;  // in the order of registration
};

}  // namespace tutti::verbs
