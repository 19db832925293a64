#include "collectives/run/allocation.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tutti/communicator.h>

#include "collectives/group/group.h"
#include "collectives/group/retire.h"
#include "collectives/group/world.h"
#include "transport/offload/offload.h"

// This file implements `Communicator::allocate`, `Communicator::register_memory` and `Allocation`.
namespace tutti {

namespace {

// Throws if some ranks request memory of the host and other ranks request memory of a device, or if a rank
// could not allocate memory of its device. All ranks have the same votes, so all ranks throw the same error.
void check_votes(const Group& group, const std::vector<AllocationVote>& votes) {
  for (std::size_t rank = 0; rank < votes.size(); ++rank) {
    const AllocationVote& vote = votes[rank];
    const std::string who = group.describe(static_cast<int>(rank)) + ": allocate: ";
    const std::string what = std::to_string(vote.bytes) + " bytes in " + to_string(vote.memory);
    if (vote.memory.kind() != votes.front().memory.kind()) {
      throw Error(Status(Code::mismatch, who + what + ", but " + group.describe(0) + " allocates in " +
                                             to_string(votes.front().memory)));
    }
    if (!vote.outcome.ok()) throw Error(vote.outcome.failure(group.ranks()[rank]).with_context(who + what));
  }
}

// Exchanges the votes of all ranks.
std::vector<AllocationVote> exchange_votes(Group& group, const AllocationVote& mine) {
  std::vector<AllocationVote> votes(static_cast<std::size_t>(group.size()));
  constexpr std::size_t words = sizeof mine / sizeof(std::uint64_t);
  group
      .collective({.kind = CollectiveKind::all_gather,
                   .part_of = Composite::allocate,
                   .in = ConstBuffer(&mine, words, DataType::uint64),
                   .out = Buffer(votes.data(), votes.size() * words, DataType::uint64)},
                  {})
      .wait();
  check_votes(group, votes);
  return votes;
}

std::vector<std::uint64_t> parts_of(const std::vector<AllocationVote>& votes) {
  std::vector<std::uint64_t> parts;
  for (const AllocationVote& vote : votes) parts.push_back(vote.bytes);
  return parts;
}

// Allocates the memory with the first library that supports this kind of device.
Result<std::unique_ptr<AllocatedMemory>> allocate_by_library(const World& world, std::size_t bytes,
                                                             Memory memory) {
  Status why(Code::unsupported, "no library is loaded");
  for (const std::unique_ptr<Offload>& offload : world.offloads) {
    Result<std::unique_ptr<AllocatedMemory>> made = offload->allocate(bytes, memory);
    if (made.ok() || made.status().code() != Code::unsupported) return made;
    why = made.status().with_context(offload->name());
  }
  return why;
}

// Each rank allocates its memory before it votes, since only an attempt shows whether a device has enough
// memory left.
std::shared_ptr<GroupMemory> allocate_on_device(const std::shared_ptr<Group>& group, std::size_t bytes,
                                                Memory memory) {
  const Driver& driver = group->world().engine->driver;
  if (driver.forked()) throw Error(forked_child());
  if (driver.driven_by_this_thread()) {
    throw Error(Status(Code::invalid_argument, "memory of a device is allocated inside a `then` callback"));
  }
  Result<std::unique_ptr<AllocatedMemory>> made = allocate_by_library(group->world(), bytes, memory);
  AllocationVote mine{.bytes = bytes, .memory = memory};
  mine.outcome.set(made.status());
  const std::vector<AllocationVote> votes = exchange_votes(*group, mine);
  struct Kept {
    std::shared_ptr<Group> group;
    GroupMemory memory;  // destroyed before the group
  };
  auto* const kept = new Kept{group, {std::move(made).take(), group->rank(), parts_of(votes)}};
  const std::shared_ptr<Kept> owner(kept, [&driver](Kept* unused) { retire(driver, unused); });
  return {owner, &kept->memory};
}

}  // namespace

Allocation Communicator::allocate(std::size_t bytes, Memory memory) {
  Group& group = this->group();
  if (memory != Memory()) return Allocation(group_, allocate_on_device(group_, bytes, memory));
  const std::vector<AllocationVote> votes =
      exchange_votes(group, {.bytes = bytes, .limits = memory_limits()});
  if (const auto shortage = find_shortage(votes, group.topology())) {
    throw Error(Status(Code::resource_exhausted,
                       describe(rank()) + ": allocate: " + std::to_string(shortage->wanted) +
                           " bytes in all on the host of " + describe(shortage->rank) + ", where " +
                           std::to_string(shortage->limit) + " are possible at most"));
  }
  return Allocation(group_, group.allocate(parts_of(votes)));
}

Registration Communicator::register_memory(std::span<std::byte> memory) {
  struct Held {
    std::shared_ptr<Group> group;
    std::vector<std::unique_ptr<RegisteredMemory>> parts;  // destroyed before the group
  };
  if (group().world().engine->driver.forked()) throw Error(forked_child());
  auto parts = group().add_memory(memory).take();
  Registration registration;
  registration.held_ = std::make_shared<Held>(Held{group_, std::move(parts)});
  return registration;
}

Allocation::Allocation(std::shared_ptr<Group> group, std::shared_ptr<GroupMemory> memory)
    : group_(std::move(group)), memory_(std::move(memory)) {}

// If ranks share the memory, the group keeps another reference until all ranks have released it. So
// `memory_.reset()` does not free the memory here. The driving thread frees it later, because no
// other thread may.
void Allocation::let_go() {
  GroupMemory* const memory = memory_.get();
  const bool shared = memory != nullptr && memory->shared();
  memory_.reset();
  if (shared && memory->release()) group_->tell_memory_unused();
}

Allocation& Allocation::operator=(Allocation&& other) noexcept {
  if (this == &other) return *this;
  let_go();
  memory_ = std::move(other.memory_);
  group_ = std::move(other.group_);
  return *this;
}

Allocation::~Allocation() { let_go(); }

void* Allocation::data() const { return memory_ == nullptr ? nullptr : memory_->data(); }
std::size_t Allocation::bytes() const { return memory_ == nullptr ? 0 : memory_->bytes(); }
bool Allocation::registered() const { return memory_ != nullptr && memory_->registered(); }

}  // namespace tutti
