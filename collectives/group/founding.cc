#include "collectives/group/founding.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "transport/message.h"

namespace tutti {

namespace {

// Returns the highest number that a rank proposes.
std::uint32_t highest(const std::vector<Vote>& votes) {
  const std::int64_t number = std::ranges::max(votes, {}, &Vote::number).number;
  if (number > 0 && number < user_context_bit) return static_cast<std::uint32_t>(number);
  throw Error(Status(Code::resource_exhausted, "no number is left for a new communicator"));
}

}  // namespace

Founding::Founding(Group& group, std::vector<int> voters, Exchange exchange)
    : group_(group),
      world_(group.world()),
      voters_(std::move(voters)),
      exchange_(std::move(exchange)),
      votes_(voters_.size()) {
  const Driver& driver = world_.engine->driver;
  if (driver.forked()) throw Error(forked_child());
  if (driver.driven_by_this_thread())
    throw Error(Status(Code::invalid_argument, "a communicator is made inside a `then` callback"));
}

void Founding::agree(std::int64_t color, int key) {
  Vote mine = first_vote(color, key);
  exchange_(mine, votes_);
  for (std::size_t i = 0; i < votes_.size(); ++i) {
    if (votes_[i].color == color) members_.push_back(i);
  }
  std::ranges::stable_sort(members_, {}, [this](std::size_t position) { return votes_[position].key; });
  name_members();
  const std::optional<std::size_t> giver = color == no_color ? std::nullopt : choose_giver();
  if (giver && voters_[*giver] == group_.rank()) mine.place = hand_out();
  settle(mine, giver);
}

// Each rank reserves the number that it votes for, and hands out a range of shared memory. At most one of
// these ranges is kept. If all ranks have voted for the same number, as they usually have, they agree at
// once. Otherwise they vote again (`settle`).
void Founding::agree_together(std::int64_t color) {
  members_.resize(voters_.size());
  std::iota(members_.begin(), members_.end(), std::size_t{0});
  name_members();
  Vote mine = first_vote(color, 0);
  number_ = static_cast<std::uint32_t>(mine.number);
  mine.reserved = reserve() ? 1 : 0;
  mine.place = hand_out();
  try {
    vote(mine);
  } catch (const Error& error) {
    // If the old communicator has not failed, a mismatch means that the ranks have passed different lists. In
    // that case no rank joins the range, since every rank that receives all votes sees the mismatch.
    const bool lists_differ = error.code() == Code::mismatch && group_.status().ok();
    if (lists_differ && mine.place >= 0) take_back(mine.place);
    throw;
  }
  const std::optional<std::size_t> giver = choose_giver();
  if (mine.place >= 0 && (!giver || voters_[*giver] != group_.rank()))
    take_back(std::exchange(mine.place, -1));
  const auto agrees = [&](const Vote& each) { return each.number == mine.number && each.reserved == 1; };
  if (!std::ranges::all_of(votes_, agrees)) return settle(mine, giver);
  number_ = highest(votes_);
  find_place(giver);
}

// Reserves the number, unless this founding has done so before.
bool Founding::reserve() {
  if (number_ != reserved_ && !world_.contexts.take(number_)) return false;
  reserved_ = number_;
  return true;
}

Vote Founding::first_vote(std::int64_t color, int key) {
  Vote mine{.color = color, .key = key, .number = world_.contexts.propose()};
  const DriverGuard guard(world_.engine->driver);
  mine.room = world_.host_memory.room();
  return mine;
}

// Votes until all ranks have reserved the same number. One more round may not be enough. Some of
// the ranks may be making other communicators at the same time, and may take a number after another
// rank has proposed it.
void Founding::settle(Vote mine, std::optional<std::size_t> giver) {
  for (bool all = false; !all;) {
    number_ = highest(votes_);
    mine.reserved = reserve() ? 1 : 0;
    mine.number = world_.contexts.above_all();
    vote(mine);
    all = std::ranges::all_of(votes_, [](const Vote& each) { return each.reserved == 1; });
  }
  find_place(giver);
}

void Founding::find_place(std::optional<std::size_t> giver) {
  if (giver && votes_[*giver].place >= 0) place_ = static_cast<std::uint64_t>(votes_[*giver].place);
}

void Founding::vote(const Vote& mine) {
  try {
    exchange_(mine, votes_);
  } catch (const Error& error) {
    // Other ranks may have received all votes. `renounce` tells them that this rank will not join them in the
    // new communicator.
    const DriverGuard guard(world_.engine->driver);
    if (mine.reserved == 1) world_.desk.renounce(number_, ranks_, error.status());
    throw;
  }
}

void Founding::name_members() {
  for (const std::size_t position : members_)
    ranks_.push_back(group_.ranks()[static_cast<std::size_t>(voters_[position])]);
}

// Returns the member with the most room, or nothing if the members do not share memory. All members choose
// the same member: they see the same votes, and the ranks of a host are all in one segment or in none.
std::optional<std::size_t> Founding::choose_giver() const {
  const bool shared = world_.host_memory.is_shared_by(ranks_) &&
                      std::ranges::all_of(members_, [this](std::size_t i) { return votes_[i].room >= 0; });
  if (members_.size() < 2 || !shared) return std::nullopt;
  return *std::ranges::max_element(members_, {}, [this](std::size_t i) { return votes_[i].room; });
}

// Returns the place of a new range, or -1 if there is no room. If the founding fails because a rank is lost
// or late, other ranks may have joined the range already. In that case the range is not handed out again.
std::int64_t Founding::hand_out() {
  const DriverGuard guard(world_.engine->driver);
  const std::optional<std::uint64_t> place = world_.host_memory.take(world_.range_bytes(members_.size()));
  return place ? static_cast<std::int64_t>(*place) : -1;
}

void Founding::take_back(std::int64_t place) {
  const DriverGuard guard(world_.engine->driver);
  world_.host_memory.cancel(static_cast<std::uint64_t>(place));
}

}  // namespace tutti
