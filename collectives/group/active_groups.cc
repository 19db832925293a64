#include "collectives/group/active_groups.h"

#include <algorithm>

namespace tutti {

namespace {

// Each member is asked only once in this many polls whether it may rest. A member that rests costs nothing,
// but waking it takes time. The question is asked so rarely that a communicator in constant use does not rest
// between two calls.
constexpr std::uint32_t polls_per_question = 256;

}  // namespace

ActiveGroups::ActiveGroups(Driver& driver) : driver_(driver) {
  const DriverGuard guard(driver_);
  driver_.add(*this);
}

ActiveGroups::~ActiveGroups() {
  const DriverGuard guard(driver_);
  driver_.remove(*this);
}

void ActiveGroups::add(Member& member) {
  all_.push_back(&member);
  member.stir();
}

void ActiveGroups::remove(Member& member) {
  std::erase(all_, &member);
  if (!member.active_) return;
  member.active_ = false;
  *std::ranges::find(active_, &member) = nullptr;
  any_gone_ = true;
}

void ActiveGroups::activate(Member& member) {
  member.active_ = true;
  active_.push_back(&member);
}

bool ActiveGroups::poll() {
  if (all_stirred_.load(std::memory_order_relaxed) && all_stirred_.exchange(false)) {
    for (Member* member : all_) member->stir();
  }
  bool did = false;
  // The loop uses an index, since a member that is polled may stir others.
  for (std::size_t i = 0; i < active_.size(); ++i) {
    if (active_[i] != nullptr) did |= active_[i]->poll();
    Member* const member = active_[i];
    if (member == nullptr || ++member->polls_ % polls_per_question != 0 || !member->rest()) continue;
    member->active_ = false;
    active_[i] = nullptr;
    any_gone_ = true;
  }
  if (any_gone_) std::erase(active_, nullptr);
  any_gone_ = false;
  return did;
}

bool ActiveGroups::prepare_sleep() {
  bool work = all_stirred_.load();
  for (Member* member : active_) {
    if (member != nullptr) work |= member->prepare_sleep();
  }
  return work;
}

void ActiveGroups::cancel_sleep() {
  for (Member* member : active_) {
    if (member != nullptr) member->cancel_sleep();
  }
}

bool ActiveGroups::expects_memory() const {
  return std::ranges::any_of(
      active_, [](const Member* member) { return member != nullptr && member->expects_memory(); });
}

Deadline ActiveGroups::next_deadline() const {
  Deadline next = Deadline::never();
  for (const Member* member : active_) {
    if (member != nullptr) next = earlier(next, member->next_deadline());
  }
  return next;
}

}  // namespace tutti
