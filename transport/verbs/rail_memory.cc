#include "transport/verbs/rail_memory.h"

#include <utility>

#include "transport/verbs/address.h"

namespace tutti::verbs {
namespace {

// A place has room for four keys: two in `key`, and two in `more_keys`.
static_assert(max_rails == 4);

constexpr int writable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

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

RailMemory::RailMemory(const std::vector<SharedDomain>& domains, std::size_t register_from)
    : register_from_(register_from) {
  for (const SharedDomain& domain : domains)
    memories_.push_back(std::make_shared<Memory>(domain, register_from));
}

Result<std::unique_ptr<RegisteredMemory>> RailMemory::add(std::span<std::byte> region) {
  auto added = with_each(memories_, region, [&](Memory& memory) { return memory.add(region); });
  if (added.status().code() == Code::unsupported) return std::unique_ptr<RegisteredMemory>();
  return added;
}

Result<std::unique_ptr<RegisteredMemory>> RailMemory::add_staging(std::span<std::byte> region) {
  return with_each(memories_, region, [&](Memory& memory) { return memory.add_writable(region); });
}

std::unique_ptr<RegisteredMemory> RailMemory::add_briefly(std::span<const std::byte> memory, Use use) {
  if (memory.empty() || memory.size() < register_from_) return nullptr;
  return add_brief(memory, use == Use::receiving ? writable : 0);
}

std::unique_ptr<RegisteredMemory> RailMemory::add_permit(std::span<std::byte> memory) {
  return add_brief(memory, writable);
}

std::unique_ptr<RegisteredMemory> RailMemory::add_brief(std::span<const std::byte> memory, int access) {
  auto all = std::make_unique<Registrations>();
  for (const auto& each : memories_) {
    all->each.push_back(each->add_brief(memory, access));
    if (all->each.back() == nullptr) return nullptr;
  }
  return all;
}

bool RailMemory::is_registered(std::span<const std::byte> memory) const {
  return memories_.front()->is_registered(memory);
}

RemotePlace RailMemory::place_of(std::span<const std::byte> memory, const RegisteredMemory& own) const {
  RemotePlace place{.address = reinterpret_cast<std::uintptr_t>(memory.data())};
  for (std::size_t rail = 0; rail < memories_.size(); ++rail)
    add_key(place, rail, memories_[rail]->region_of(memory, part_of(&own, rail))->remote_key());
  return place;
}

std::optional<RemotePlace> RailMemory::find(std::span<const std::byte> memory) const {
  RemotePlace whole;
  for (std::size_t rail = 0; rail < memories_.size(); ++rail) {
    const std::optional<RemotePlace> place = memories_[rail]->find(memory);
    if (!place) return std::nullopt;
    whole.address = place->address;
    add_key(whole, rail, static_cast<std::uint32_t>(place->key));
  }
  return whole;
}

void add_key(RemotePlace& place, std::size_t rail, std::uint32_t key) {
  (rail < 2 ? place.key : place.more_keys) |= std::uint64_t{key} << (32 * (rail % 2));
}

std::uint32_t key_of(const RemotePlace& place, std::size_t rail) {
  const std::uint64_t keys = rail < 2 ? place.key : place.more_keys;
  return static_cast<std::uint32_t>(keys >> (32 * (rail % 2)));
}

const RegisteredMemory* part_of(const RegisteredMemory* whole, std::size_t rail) {
  return whole == nullptr ? nullptr : static_cast<const Registrations*>(whole)->each[rail].get();
}

}  // namespace tutti::verbs
