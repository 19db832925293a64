#include "collectives/group/roll_call.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "transport/message.h"

namespace tutti {

namespace {

// The other ranks wait this much longer than the rank that collects the votes. Only the collecting rank knows
// whose vote is missing, so its time should run out first.
constexpr std::chrono::seconds patience_with_collector{1};

Status not_a_list(const std::string& why) { return Status(Code::invalid_argument, "group: " + why); }

}  // namespace

RollCall::RollCall(Group& group, std::vector<int> ranks, int key, std::chrono::nanoseconds limit)
    : group_(group),
      ranks_(std::move(ranks)),
      tag_(library_tag_bit | static_cast<std::uint32_t>(key)),
      limit_(limit.count() > 0 ? limit : group.world().default_timeout) {}

Status RollCall::check() const {
  std::vector<bool> listed(static_cast<std::size_t>(group_.size()));
  for (const int rank : ranks_) {
    if (rank < 0 || rank >= group_.size()) {
      return not_a_list("there is no rank " + std::to_string(rank) + " among " +
                        std::to_string(group_.size()) + " ranks");
    }
    if (listed[static_cast<std::size_t>(rank)])
      return not_a_list("rank " + std::to_string(rank) + " is listed twice");
    listed[static_cast<std::size_t>(rank)] = true;
  }
  if (listed[static_cast<std::size_t>(group_.rank())]) return {};
  return not_a_list(group_.describe(group_.rank()) + " is not listed, so it must not call");
}

// Computes the hash FNV-1a (Fowler, Noll and Vo), one rank at a time.
std::int64_t RollCall::digest() const {
  std::uint64_t state = 0xcbf29ce484222325;
  for (const int rank : ranks_) state = (state ^ static_cast<std::uint64_t>(rank)) * 0x100000001b3;
  return static_cast<std::int64_t>(state >> 1);
}

// The votes have the order of the collector's list, which may differ from this rank's list. So the key of
// each vote is the rank that has cast it.
void RollCall::exchange(const Vote& mine, std::span<Vote> votes) {
  Vote own = mine;
  own.key = group_.rank();
  if (std::ranges::min(ranks_) == group_.rank()) {
    collect(own, votes);
  } else {
    follow(own, votes);
  }
  const auto other = std::ranges::find_if(votes, [&](const Vote& vote) { return vote.color != own.color; });
  if (other == votes.end()) return;
  const bool is_rank = other->key >= 0 && other->key < group_.size();
  throw Error(lists_others(is_rank ? static_cast<int>(other->key) : std::ranges::min(ranks_)));
}

void RollCall::collect(const Vote& mine, std::span<Vote> votes) {
  std::vector<Transfer> from_others, to_others;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i] == group_.rank()) {
      votes[i] = mine;
      continue;
    }
    from_others.push_back(leg(Transfer::Direction::recv, ranks_[i], votes.subspan(i, 1)));
    to_others.push_back(leg(Transfer::Direction::send, ranks_[i], votes));
  }
  group_.own_transfers(from_others, Composite::group, {.timeout = limit_}).wait();
  group_.own_transfers(to_others, Composite::group, {.timeout = limit_}).wait();
}

void RollCall::follow(const Vote& mine, std::span<Vote> votes) {
  const int collector = std::ranges::min(ranks_);
  Vote own = mine;
  const std::vector<Transfer> legs = {leg(Transfer::Direction::recv, collector, votes),
                                      leg(Transfer::Direction::send, collector, {&own, 1})};
  constexpr auto forever = std::chrono::nanoseconds::max();
  const CallOptions options{.timeout = std::min(limit_, forever - patience_with_collector) +
                                       patience_with_collector};
  // If the collector's list is shorter than this rank's list, the last votes keep these values.
  std::ranges::fill(votes, Vote{.color = -1, .key = collector});
  try {
    group_.own_transfers(legs, Composite::group, options).wait();
  } catch (const Error& error) {
    const bool too_long = error.code() == Code::mismatch && group_.status().ok();
    throw too_long ? Error(lists_others(collector)) : error;
  }
}

Status RollCall::lists_others(int rank) const {
  return Status(
      Code::mismatch,
      "group: " + group_.describe(rank) + " lists other ranks than " + group_.describe(group_.rank()),
      group_.ranks()[static_cast<std::size_t>(rank)]);
}

Transfer RollCall::leg(Transfer::Direction direction, int peer, std::span<Vote> votes) const {
  return {direction, Buffer(votes.data(), votes.size() * vote_words, DataType::int64), peer, tag_};
}

}  // namespace tutti
