#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/free_delete.h"
#include "transport/verbs/memory.h"

namespace tutti::verbs {

// A `Pool` is the registered memory of one connection: slots into which the device receives packets, and
// slots from which it sends packets that are too large to be sent inline.
class Pool {
 public:
  // `create` does not fall back to fewer or smaller slots than these.
  static constexpr std::uint32_t least_slots = 4;
  static constexpr std::uint32_t least_bytes = 1024;

  // Makes a pool of `slots` receive slots and half as many send slots. If that much memory cannot be
  // registered, makes fewer and smaller slots. Fails with `resource_exhausted` if even the smallest pool
  // cannot be registered.
  static Result<std::unique_ptr<Pool>> create(const SharedDomain& domain, std::uint32_t slots,
                                              std::uint32_t slot_bytes);

  std::uint32_t receive_slots() const { return slots_; }
  std::uint32_t send_slots() const { return slots_ / 2; }
  std::uint32_t slot_bytes() const { return slot_bytes_; }
  std::uint32_t key() const { return region_->local_key(); }
  std::span<std::byte> receive_slot(std::uint32_t index) const { return slot(index); }
  std::span<std::byte> send_slot(std::uint32_t index) const { return slot(slots_ + index); }

 private:
  Pool(std::uint32_t slots, std::uint32_t slot_bytes) : slots_(slots), slot_bytes_(slot_bytes) {}
  Status allocate(const SharedDomain& domain);
  std::span<std::byte> slot(std::uint32_t index) const {
    return {memory_.get() + std::size_t{index} * slot_bytes_, slot_bytes_};
  }

  const std::uint32_t slots_;
  const std::uint32_t slot_bytes_;
  AlignedBytes memory_;
  std::unique_ptr<Region> region_;  // destroyed before the memory
};

}  // namespace tutti::verbs
