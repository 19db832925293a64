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

// A `RailMemory` is the memory of this rank that is registered with all of its ports. A channel with several
// rails (pairs of ports) uses it. A channel with one rail uses the `Memory` of its port. Any thread may call
// these functions.
class RailMemory final : public RemoteMemory {
 public:
  // `domains` has a domain for each port, in the order of the ports, and at most `max_rails` of them.
  // `add_briefly` registers memory of at least `register_from` bytes.
  RailMemory(const std::vector<SharedDomain>& domains, std::size_t register_from);

  // These functions register memory with all ports, or with none if one of them refuses. `add` returns null
  // if the process cannot read and write the memory itself, as with memory of a GPU: no message uses it.
  Result<std::unique_ptr<RegisteredMemory>> add(std::span<std::byte> region) override;
  Result<std::unique_ptr<RegisteredMemory>> add_staging(std::span<std::byte> region) override;
  std::unique_ptr<RegisteredMemory> add_briefly(std::span<const std::byte> memory, Use use) override;
  // Registers the memory of a receive for that receive, so that peers can write into it without a window.
  std::unique_ptr<RegisteredMemory> add_permit(std::span<std::byte> memory);

  bool is_registered(std::span<const std::byte> memory) const override;
  // Finds staging chunks only. The place has one key for each port (`key_of`).
  std::optional<RemotePlace> find(std::span<const std::byte> memory) const override;
  // Returns the place of memory that is registered for one receive. `own` is the registration.
  RemotePlace place_of(std::span<const std::byte> memory, const RegisteredMemory& own) const;
  // Returns the memory that is registered with one port.
  Memory& of(std::size_t rail) const { return *memories_[rail]; }

 private:
  std::unique_ptr<RegisteredMemory> add_brief(std::span<const std::byte> memory, int access);

  std::vector<std::shared_ptr<Memory>> memories_;
  const std::size_t register_from_;
};

// Returns the key of a place for one port of the rank that owns the place, or 0 if there is none. `rail` is
// the index of the port.
std::uint32_t key_of(const RemotePlace& place, std::size_t rail);
// Adds the key for that port to a place that has none for it.
void add_key(RemotePlace& place, std::size_t rail, std::uint32_t key);
// Returns the part of a registration (for one operation) that belongs to the port with the index `rail`.
// `whole` may be null.
const RegisteredMemory* part_of(const RegisteredMemory* whole, std::size_t rail);

}  // namespace tutti::verbs
