#include "collectives/group/splitting.h"

#include <algorithm>
#include <cstddef>

#include "core/descriptor_limit.h"

namespace tutti {

Splitting::Splitting(Group& group, int color, int key)
    : group_(group), votes_(static_cast<std::size_t>(group.size())) {
  constexpr std::size_t words = sizeof(Vote) / sizeof(std::int64_t);
  const Vote mine{color, key, static_cast<std::int64_t>(spare_descriptors())};
  group_
      .collective({.kind = CollectiveKind::all_gather,
                   .part_of = Composite::split,
                   .in = ConstBuffer(&mine, words, DataType::int64),
                   .out = Buffer(votes_.data(), votes_.size() * words, DataType::int64)},
                  {})
      .wait();
  const auto vote_of = [this](int rank) -> const Vote& { return votes_[static_cast<std::size_t>(rank)]; };
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (vote_of(rank).color == color) members_.push_back(rank);
  }
  std::ranges::stable_sort(members_, {}, [&](int rank) { return vote_of(rank).key; });
  for (const int member : members_) ranks_.push_back(group_.ranks()[static_cast<std::size_t>(member)]);
}

// Splits of other communicators may be in progress on some ranks. So a number that is free on all ranks when
// it is proposed may be taken by the time all of them have learned of it.
std::uint32_t Splitting::agree_on_number() {
  for (;;) {
    std::int64_t number = group_.world().contexts.propose();
    combine(Buffer(&number, 1, DataType::int64), ReduceOp::max);
    if (take_everywhere(static_cast<std::uint32_t>(number))) return static_cast<std::uint32_t>(number);
  }
}

bool Splitting::take_everywhere(std::uint32_t number) {
  World& world = group_.world();
  const bool taken = world.contexts.take(number);
  std::int32_t free = taken ? 1 : 0;
  try {
    combine(Buffer(&free, 1, DataType::int32), ReduceOp::min);
  } catch (const Error&) {
    // Other ranks may have received the answer, and wait for this rank in the new communicator.
    const DriverGuard guard(world.engine->driver);
    if (taken) world.desk.renounce(number, ranks_, group_.status());
    throw;
  }
  return free == 1;
}

void Splitting::combine(const Buffer& number, const ReduceOp& op) {
  group_
      .collective({.kind = CollectiveKind::all_reduce,
                   .part_of = Composite::split,
                   .in = number,
                   .out = number,
                   .op = &op},
                  {})
      .wait();
}

// While the members set up shared memory, the leader needs a connection to each member, and every member
// holds a descriptor (a bell) for each member.
std::optional<int> Splitting::first_in_want() const {
  constexpr std::size_t passing = 8;
  if (members_.size() == 1) return std::nullopt;
  for (const int member : members_) {
    const std::size_t connections = member == members_.front() ? members_.size() : 1;
    const auto needed = static_cast<std::int64_t>(members_.size() + connections + passing);
    if (votes_[static_cast<std::size_t>(member)].descriptors < needed) return member;
  }
  return std::nullopt;
}

}  // namespace tutti
