#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>

#include "transport/stream/remote_memory.h"

namespace tutti::inproc {

// An `ExposedMemory` is the registered memory of a rank. Like a network card, it lets peers write into
// registered regions, and refuses all other writes.
class ExposedMemory final : public RemoteMemory, public std::enable_shared_from_this<ExposedMemory> {
 public:
  Result<std::unique_ptr<RegisteredMemory>> add(std::span<std::byte> region) override;
  std::optional<RemotePlace> find(std::span<const std::byte> memory) const override;
  // Copies bytes to a place, on the calling thread. Returns false if the place is not registered.
  bool write(const RemotePlace& place, std::span<const std::byte> bytes) const;

 private:
  class Registration;

  mutable std::shared_mutex mutex_;  // held shared while a peer writes into memory
  std::uint64_t added_ = 0;
  std::map<std::uint64_t, std::span<std::byte>> regions_;  // by key
};

}  // namespace tutti::inproc
