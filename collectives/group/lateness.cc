#include <algorithm>
#include <array>
#include <bit>

#include "collectives/group/group.h"

// Operations that take long: who calls something else, who has not come, who has left.
//
// An operation that has waited for 100 ms is made known to all members, who compare it with what they call as
// the operation of that number. One whose time is over is reported to the leader, the first member that is
// there; it asks all members how far they are, and fails the communicator in the name of those who are late.
namespace tutti {

namespace {

constexpr std::chrono::milliseconds long_wait{100};
// For the answers to the leader, and for the leader's verdict.
constexpr std::chrono::milliseconds answer_limit{100};
constexpr std::chrono::milliseconds verdict_limit{300};
constexpr std::size_t most_named = 16;

// One and the same for equal calls of the same operation.
std::uint64_t key_of(const CallNote& note) {
  const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(note.call);
  std::uint64_t key = 0xcbf29ce484222325;  // FNV-1a, a word at a time
  for (const std::uint64_t word : {std::uint64_t{note.context}, note.sequence, words[0], words[1]}) {
    key = (key ^ word) * 0x100000001b3;
    key ^= key >> 32;
  }
  return key | 1;
}

}  // namespace

// --- times ---

void Group::check_deadlines() {
  const auto now = Deadline::Clock::now();
  for (Operation* operation = live_.newest(); operation != nullptr; operation = operation->next) {
    operation->stamp(now);
    if (now >= operation->deadline.when()) return expire(*operation);
    if (!operation->announced && now - operation->issued.load() >= long_wait) announce(*operation);
    if (failure_.happened()) return failure_.act();
  }
}

Deadline Group::next_deadline() const {
  Deadline first = failure_.next_deadline();
  if (inquiry_ != nullptr) first = earlier(first, inquiry_->until);
  first = earlier(first, next_look_at_dispute());
  if (live_.empty()) return first;
  const auto now = Deadline::Clock::now();
  const bool announces = world_->desk.listens();
  for (Operation* operation = live_.newest(); operation != nullptr; operation = operation->next) {
    operation->stamp(now);
    first = earlier(first, operation->deadline);
    if (announces && !operation->announced)
      first = earlier(first, Deadline::at(operation->issued.load() + long_wait));
  }
  return first;
}

void Group::announce(Operation& operation) {
  operation.announced = true;
  if (operation.kind != Operation::Kind::collective || !world_->desk.listens()) return;
  const CallNote note{context_, operation.sequence, operation.call};
  world_->desk.publish(topic_blocked, key_of(note), encode(note));
  look_for_leavers();
}

void Group::expire(Operation& operation) {
  const Status why = timed_out(operation);
  const int judge = leader();
  const bool may_ask =
      !operation.expired && operation.kind == Operation::Kind::collective && world_->desk.listens();
  if (!may_ask) {
    failure_.note(operation.expired && judge != members_.rank()
                      ? Status(why.code(), why.message() + "; " + describe(judge) + " does not answer")
                      : why);
    return failure_.act();
  }
  operation.expired = true;
  operation.deadline = Deadline::after(verdict_limit);
  ExpiredNote note;
  note.context = context_;
  note.sequence = operation.sequence;
  note.call = operation.call;
  note.text = why.message();
  if (judge == members_.rank()) return inquire(note);
  world_->desk.send(members_.world_rank(judge), topic_expired, encode(note));
}

Status Group::timed_out(const Operation& operation) const {
  const std::string waiting = operation.owner->name_awaited(operation);
  std::string text = members_.describe_this_rank() + ": " + operation.describe() + " was not over in time";
  if (!waiting.empty()) text += "; still waiting for " + waiting;
  return Status(Code::timeout, text);
}

// Messages tell that their sender has left; memory does not.
void Group::look_for_leavers() {
  if (shared_.executor() == nullptr || failure_.happened()) return;
  for (const Operation* operation = live_.newest(); operation != nullptr; operation = operation->next) {
    if (!operation->announced || !operation->is_shared()) continue;
    for (const int rank : awaited(*operation)) {
      if (!world_->desk.has_left(rank)) continue;
      return failure_.note(Status(Code::aborted, members_.describe_world_rank(rank) + " has left", rank));
    }
    return;  // only the first of them is under way
  }
}

// --- what members write ---

void Group::on_note(const ControlNote& note) {
  if (!members_.contains(note.origin)) return;
  if (note.topic == topic_shrink && shrinking_ != nullptr) {
    if (const auto said = decode_shrink(note.body)) shrinking_->on_note(members_.rank_of(note.origin), *said);
  }
  if (failure_.happened()) return;
  switch (note.topic) {
    case topic_blocked:
      if (const auto call = decode_call(note.body)) compare(note.origin, *call);
      break;
    case topic_expired:
      if (const auto expired = decode_expired(note.body); expired && leader() == members_.rank())
        inquire(*expired);
      break;
    case topic_where:
      if (const auto call = decode_call(note.body))
        world_->desk.send(note.origin, topic_here,
                          encode(HereNote{context_, call->sequence, journal_.next_collective()}));
      break;
    case topic_differs:
      if (const auto call = decode_call(note.body)) {
        hear_call(note.origin, *call);
        ask_here(note.origin, call->sequence);
      }
      break;
    case topic_called:
      if (const auto call = decode_call(note.body)) hear_call(note.origin, *call);
      break;
    case topic_unused:
      sharing_.drop_unused();
      break;
    case topic_here:
      if (const auto answer = decode_here(note.body)) take_answer(note.origin, *answer);
      break;
    default:
      break;
  }
}

// --- the leader ---

// The first member that is there, by its rank here.
int Group::leader() const {
  for (int rank = 0; rank < size(); ++rank) {
    const int world_rank = members_.world_rank(rank);
    if (!world_->desk.is_lost(world_rank) && !world_->desk.has_left(world_rank)) return rank;
  }
  return members_.rank();
}

void Group::inquire(const ExpiredNote& expired) {
  if (inquiry_ != nullptr) return;
  inquiry_ = std::make_unique<Inquiry>(Inquiry{expired,
                                               Deadline::after(answer_limit),
                                               std::vector<bool>(members_.world_ranks().size()),
                                               {},
                                               members_.world_ranks().size()});
  take_answer(mesh_.rank(), HereNote{context_, expired.sequence, journal_.next_collective()});
  world_->desk.publish(topic_where, 0, encode(static_cast<const CallNote&>(expired)));
}

void Group::take_answer(int origin, const HereNote& answer) {
  if (inquiry_ == nullptr || answer.sequence != inquiry_->about.sequence) return;
  const auto at = static_cast<std::size_t>(members_.rank_of(origin));
  if (inquiry_->answered[at]) return;
  inquiry_->answered[at] = true;
  --inquiry_->open;
  if (answer.next <= answer.sequence) inquiry_->late.push_back(mesh_.peer(origin).describe());
}

// Names those who have not come to the operation, and those who say nothing at all.
void Group::conclude() {
  if (inquiry_->open != 0 && !inquiry_->until.expired()) return;
  const std::unique_ptr<Inquiry> inquiry = std::move(inquiry_);
  std::vector<std::string> silent;
  for (int rank = 0; rank < size(); ++rank) {
    if (!inquiry->answered[static_cast<std::size_t>(rank)]) silent.push_back(describe(rank));
  }
  std::string text = inquiry->about.text;
  const auto name = [&text](const std::vector<std::string>& ranks, const char* what) {
    for (std::size_t i = 0; i < std::min(ranks.size(), most_named); ++i)
      text += (i == 0 ? "; " + std::string(what) + ": " : ", ") + ranks[i];
    if (ranks.size() > most_named) text += " and " + std::to_string(ranks.size() - most_named) + " more";
  };
  name(inquiry->late, "late");
  name(silent, "not answering");
  failure_.note(Status(Code::timeout, text));
  failure_.act();
}

}  // namespace tutti
