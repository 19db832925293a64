#include "transport/verbs/rail_memory.h"

#include <utility>

#include "transport/verbs/address.h"

namespace tutti::verbs {
namespace {

// A place has room for four keys: two in `key`, and two in `more_keys`.
static_assert(max_rails == 4);

void add_key(RemotePlace& place, std::size_t rail, std::uint64_t key) {
  (rail < 2 ? place.key : place.more_keys) |= key << (32 * (rail % 2));
}

// `Registrations` are the registrations of a region with each port.
struct Registrations final : RegisteredMemory {
  std::vector<std::unique_ptr<RegisteredMemory>> each;
};

template <class Register>
Result<std::unique_ptr<RegisteredMemory>> with_each(const std::vector<std::shared_ptr<Memory>>& memories,
                                                    std::span<std::byte> region, const Register& add) {
  if (region.empty()) return std::unique_ptr<RegisteredMemory>();
  auto all = std::make_unique<Registrations>();
  for (const auto& memory : memories) {
    Result<std::unique_ptr<RegisteredMemory>> registered = add(*memory);
    if (!registered.ok()) return registered.status();
    all->each.push_back(*std::move(registered));
  }
  return std::unique_ptr<RegisteredMemory>(std::move(all));
}

}  // namespace

RailMemory::RailMemory(const std::vector<SharedDomain>& domains) {
  for (const SharedDomain& domain : domains) memories_.push_back(std::make_shared<Memory>(domain));
}

Result<std::unique_ptr<RegisteredMemory>> RailMemory::add(std::span<std::byte> region) {
  return with_each(memories_, region, [&](Memory& memory) { return memory.add(region); });
}

Result<std::unique_ptr<RegisteredMemory>> RailMemory::add_staging(std::span<std::byte> region) {
  return with_each(memories_, region, [&](Memory& memory) { return memory.add_staging(region); });
}

Result<std::unique_ptr<RegisteredMemory>> RailMemory::add_writable(std::span<std::byte> region) {
  return with_each(memories_, region, [&](Memory& memory) { return memory.add_writable(region); });
}

std::optional<RemotePlace> RailMemory::find(std::span<const std::byte> memory) const {
  RemotePlace whole;
  for (std::size_t rail = 0; rail < memories_.size(); ++rail) {
    const std::optional<RemotePlace> place = memories_[rail]->find(memory);
    if (!place) return std::nullopt;
    whole.address = place->address;
    add_key(whole, rail, place->key);
  }
  return whole;
}

std::uint32_t key_of(const RemotePlace& place, std::size_t rail) {
  const std::uint64_t keys = rail < 2 ? place.key : place.more_keys;
  return static_cast<std::uint32_t>(keys >> (32 * (rail % 2)));
}

}  // namespace tutti::verbs
