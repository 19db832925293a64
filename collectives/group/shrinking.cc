#include "collectives/group/shrinking.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "control/desk.h"
#include "control/notes.h"
#include "transport/mesh/mesh.h"
#include "transport/message.h"

namespace tutti {

namespace {

using Kind = ShrinkNote::Kind;

// Notes that have not been answered are repeated after a pause. The first pause is short, because most
// answers arrive soon. Each further pause is twice as long as the one before, up to `longest_pause`.
constexpr std::chrono::milliseconds first_pause{10};
constexpr std::chrono::milliseconds longest_pause{50};

std::size_t count(const std::vector<bool>& members) {
  return static_cast<std::size_t>(std::ranges::count(members, true));
}

}  // namespace

Shrinking::Shrinking(std::uint32_t context, const Members& members, const Failure& failure, World& world,
                     Options options)
    : context_(context),
      members_(members),
      mesh_(*world.mesh),
      failure_(failure),
      host_memory_(world.host_memory),
      desk_(world.desk),
      contexts_(world.contexts),
      world_(world),
      options_(std::move(options)),
      size_(static_cast<std::size_t>(members.size())),
      attempt_(options_.attempt),
      joined_(size_),
      declined_(size_),
      accepted_(size_),
      learned_(size_),
      number_(world.contexts.above_all()),
      numbers_(options_.numbers),
      next_round_(Deadline::after({})),
      pause_(first_pause) {}

bool Shrinking::reserve(std::uint32_t number) {
  if (std::ranges::find(numbers_, number) != numbers_.end()) return true;
  if (!contexts_.take(number)) return false;
  numbers_.push_back(number);
  return true;
}

// --- the members that are alive ---

bool Shrinking::gone(int position) const {
  const int rank = members_.world_rank(position);
  return declined_[static_cast<std::size_t>(position)] || desk_.is_lost(rank) || desk_.has_left(rank);
}

// Returns whether, as far as this rank knows, it can reach the member.
bool Shrinking::reaches(int position) const {
  const int rank = members_.world_rank(position);
  return !desk_.is_lost(rank) && mesh_.peer_status(rank).ok();
}

int Shrinking::leader() const {
  int first = 0;
  while (first != members_.rank() && gone(first)) ++first;
  return first;
}

ShrinkNote Shrinking::note(Kind kind) const {
  ShrinkNote made;
  made.kind = kind;
  made.context = context_;
  made.attempt = attempt_;
  return made;
}

ShrinkNote Shrinking::own_join() const {
  ShrinkNote join = note(Kind::join);
  join.generation = options_.generation;
  join.number = number_;
  join.needed = options_.needed;
  join.completed = options_.completed;
  if (host_memory_.room() >= 0) join.place = 0;
  join.members.resize(size_);
  for (std::size_t i = 0; i < size_; ++i) join.members[i] = !reaches(static_cast<int>(i));
  return join;
}

void Shrinking::send(int position, const ShrinkNote& note) {
  desk_.send(members_.world_rank(position), topic_shrink, encode(note));
}

// --- time ---

bool Shrinking::poll() {
  if (over_ || !next_round_.expired()) return false;
  work();
  return true;
}

void Shrinking::work() {
  if (over_) return;
  next_round_ = Deadline::after(pause_);
  pause_ = std::min(2 * pause_, longest_pause);
  if (desk_.is_fenced()) return finish(failure_.status());
  if (options_.deadline.expired()) return finish(telling_ ? Status() : late());
  if (telling_) {
    tell(true);
  } else if (leader() == members_.rank()) {
    lead(true);
  } else {
    send(leader(), own_join());
  }
}

Status Shrinking::late() const {
  if (leader() != members_.rank()) {
    return Status(Code::timeout,
                  "shrink: " + members_.describe(leader()) + ", which leads, has not decided in time");
  }
  std::string missing;
  for (std::size_t i = 0; i < size_; ++i) {
    const int position = static_cast<int>(i);
    if (!gone(position) && !joined_[i])
      missing += (missing.empty() ? "" : ", ") + members_.describe(position);
  }
  return Status(Code::timeout, "shrink: not all survivors have called it in time: missing " + missing);
}

// --- notes ---

void Shrinking::on_note(int position, const ShrinkNote& note) {
  const auto at = static_cast<std::size_t>(position);
  const bool names_members = note.kind == Kind::join || note.kind == Kind::propose ||
                             note.kind == Kind::commit || note.kind == Kind::refuse;
  if (over_ || gone(position) || (names_members && note.members.size() != size_)) return;
  if (note.kind == Kind::commit && note.spared.size() != size_) return;
  if (telling_) {  // the desk answers the other notes (`answer_shrink`)
    if (note.kind == Kind::learned) learned_[at] = true;
    if (note.kind == Kind::decline) declined_[at] = true;
    return tell(false);
  }
  const bool ends = note.kind == Kind::commit || note.kind == Kind::refuse || note.kind == Kind::decline;
  if (note.attempt > attempt_ && !ends) begin_anew(note.attempt);
  if (note.attempt != attempt_ && note.kind != Kind::commit && note.kind != Kind::decline) return;
  switch (note.kind) {
    case Kind::join:
      joined_[at] = note;
      break;
    case Kind::decline:
      declined_[at] = true;
      break;
    case Kind::ask:
      if (leader() == position) send(position, own_join());
      return;
    case Kind::propose:
      return answer_proposal(position, note);
    case Kind::accept:
      if (note.round == proposal_.round) accepted_[at] = true;
      break;
    case Kind::object:
      if (joined_[at]) joined_[at]->number = note.number;
      break;
    case Kind::commit:
    case Kind::refuse:
      return conclude(note);
    case Kind::learned:
      return;
  }
  if (leader() == members_.rank()) lead(false);
}

// Adopts a later attempt: another member has given up the current attempt, and has called `shrink` again.
void Shrinking::begin_anew(std::uint32_t attempt) {
  attempt_ = attempt;
  joined_.assign(size_, std::nullopt);
  accepted_.assign(size_, false);
  proposal_ = {};
}

void Shrinking::answer_proposal(int position, const ShrinkNote& proposal) {
  if (leader() != position || !proposal.members[static_cast<std::size_t>(members_.rank())]) return;
  ShrinkNote answer = note(reserve(proposal.number) ? Kind::accept : Kind::object);
  answer.round = proposal.round;
  if (answer.kind == Kind::object) answer.number = number_ = contexts_.above_all();
  send(position, answer);
}

// --- leading ---

// Takes the leader's next step. If `again` is true, notes that have not been answered are sent again.
void Shrinking::lead(bool again) {
  joined_[static_cast<std::size_t>(members_.rank())] = own_join();
  bool all = true;
  for (std::size_t i = 0; i < size_; ++i) {
    if (gone(static_cast<int>(i)) || joined_[i]) continue;
    all = false;
    if (again) send(static_cast<int>(i), note(Kind::ask));
  }
  if (!all) return;
  const std::vector<bool> members = survivors();
  std::uint32_t needed = 1;
  for (std::size_t i = 0; i < size_; ++i) {
    if (members[i]) needed = std::max(needed, joined_[i]->needed);
  }
  if (count(members) < needed) {
    ShrinkNote refusal = note(Kind::refuse);
    refusal.members = members;
    return conclude(refusal);
  }
  propose(members, again);
}

// Returns the members that have joined. If two of them cannot reach each other, only the lower rank remains.
std::vector<bool> Shrinking::survivors() const {
  std::vector<bool> members(size_);
  for (std::size_t i = 0; i < size_; ++i) members[i] = joined_[i] && !gone(static_cast<int>(i));
  for (std::size_t low = 0; low < size_; ++low) {
    for (std::size_t high = low + 1; high < size_; ++high) {
      if (members[low] && members[high] && (joined_[low]->members[high] || joined_[high]->members[low]))
        members[high] = false;
    }
  }
  return members;
}

// Returns what this rank proposes to `members`, except for the round and the place.
ShrinkNote Shrinking::proposal_to(const std::vector<bool>& members) const {
  ShrinkNote next = note(Kind::propose);
  next.members = members;
  next.spared.resize(size_);
  next.completed = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < size_; ++i) {
    next.spared[i] = declined_[i] || desk_.has_left(members_.world_rank(static_cast<int>(i)));
    if (!members[i]) continue;
    next.number = std::max(next.number, joined_[i]->number);
    next.completed = std::min(next.completed, joined_[i]->completed);
    next.generation = std::max(next.generation, joined_[i]->generation + 1);
  }
  return next;
}

void Shrinking::propose(const std::vector<bool>& members, bool again) {
  ShrinkNote next = proposal_to(members);
  // Earlier attempts may have used up all numbers, which are below `user_context_bit`.
  if (next.number >= user_context_bit)
    return finish(Status(Code::resource_exhausted, "shrink: no number is left for a new communicator"));
  if (!reserve(next.number)) {
    number_ = contexts_.above_all();
    return lead(again);
  }
  if (proposal_.round == 0 || next.members != proposal_.members || next.number != proposal_.number) {
    next.round = proposal_.round + 1;
    hand_out_range(members);
    next.place = place_;
    proposal_ = next;
    accepted_.assign(size_, false);
    accepted_[static_cast<std::size_t>(members_.rank())] = true;
    again = true;
  }
  bool all = true;
  for (std::size_t i = 0; i < size_; ++i) {
    if (!members[i] || accepted_[i]) continue;
    all = false;
    if (again) send(static_cast<int>(i), proposal_);
  }
  if (!all) return;
  ShrinkNote decision = proposal_;
  decision.kind = Kind::commit;
  conclude(decision);
}

void Shrinking::hand_out_range(const std::vector<bool>& members) {
  if (place_) host_memory_.cancel(*std::exchange(place_, std::nullopt));
  std::vector<int> ranks;
  bool share = true;
  for (std::size_t i = 0; i < size_; ++i) {
    if (!members[i]) continue;
    ranks.push_back(members_.world_rank(static_cast<int>(i)));
    share &= joined_[i]->place.has_value();
  }
  if (share && ranks.size() > 1 && host_memory_.is_shared_by(ranks))
    place_ = host_memory_.take(world_.range_bytes(ranks.size()));
}

// --- the end ---

// From here on, the desk tells the decision to members that still ask, join or propose.
void Shrinking::conclude(const ShrinkNote& decision) {
  decision_ = decision;
  if (decision.kind == Kind::commit && decision.place == place_) place_.reset();  // the survivors use it now
  desk_.remember(context_, encode(decision));
  const bool leads = leader() == members_.rank();
  if (leads) tell(true);
  if (decision.kind == Kind::refuse) return finish(too_few(decision.members));
  if (!decision.members[static_cast<std::size_t>(members_.rank())]) {
    return finish(Status(Code::aborted, "shrink: the others continue without " +
                                            members_.describe(members_.rank()) +
                                            ", which not all of them can reach"));
  }
  if (!reserve(decision.number))
    return finish(Status(Code::internal, "shrink: the new communicator's number is taken"));
  telling_ = leads;
  if (telling_) return tell(false);
  finish({});
}

// The leader calls this to tell members the decision. After a commit, the leader finishes here once all
// survivors have learned of the commit.
void Shrinking::tell(bool again) {
  bool all = true;
  for (std::size_t i = 0; i < size_; ++i) {
    const int position = static_cast<int>(i);
    if (position == members_.rank() || gone(position) || learned_[i]) continue;
    if (decision_.members[i]) all = false;
    if (again) send(position, decision_);
  }
  if (all && telling_) finish({});
}

Status Shrinking::too_few(const std::vector<bool>& members) const {
  return Status(Code::peer_lost, "shrink: only " + std::to_string(count(members)) + " of " +
                                     std::to_string(size_) +
                                     " ranks are left, and not all of them accept so few (see min_size)");
}

void Shrinking::finish(const Status& status) {
  if (place_) host_memory_.cancel(*std::exchange(place_, std::nullopt));
  over_ = true;
  status_ = status;
  done_.store(1);
  desk_.driver().notify(done_);
}

}  // namespace tutti
