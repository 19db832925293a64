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
#include "collectives/group/world.h"

// This file implements `Communicator::allocate`, `Communicator::register_memory` and `Allocation`.
namespace tutti {

Allocation Communicator::allocate(std::size_t bytes) {
  std::vector<AllocationVote> votes(static_cast<std::size_t>(size()));
  const AllocationVote mine{bytes, memory_limits()};
  constexpr std::size_t words = sizeof mine / sizeof(std::uint64_t);
  group()
      .collective({.kind = CollectiveKind::all_gather,
                   .part_of = Composite::allocate,
                   .in = ConstBuffer(&mine, words, DataType::uint64),
                   .out = Buffer(votes.data(), votes.size() * words, DataType::uint64)},
                  {})
      .wait();
  if (const auto shortage = find_shortage(votes, group().topology())) {
    throw Error(Status(Code::resource_exhausted,
                       describe(rank()) + ": allocate: " + std::to_string(shortage->wanted) +
                           " bytes in all on the host of " + describe(shortage->rank) + ", where " +
                           std::to_string(shortage->limit) + " are possible at most"));
  }
  std::vector<std::uint64_t> parts;
  for (const AllocationVote& vote : votes) parts.push_back(vote.bytes);
  return Allocation(group_, group().allocate(parts));
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

// The group keeps another reference until all ranks have released the memory. So `memory_.reset()` does not
// free the memory here. The driving thread frees it later, because no other thread may.
void Allocation::let_go() {
  GroupMemory* const memory = memory_.get();
  const bool shared = registered();
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
bool Allocation::registered() const { return memory_ != nullptr && memory_->shared(); }

}  // namespace tutti
