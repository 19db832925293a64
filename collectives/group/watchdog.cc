#include "collectives/group/watchdog.h"

#include <array>
#include <bit>
#include <chrono>
#include <string>
#include <string_view>

namespace tutti {

namespace {

constexpr std::chrono::milliseconds long_wait{100};
// Once an operation has been reported to the leader, the leader must reach its verdict within this time.
constexpr std::chrono::milliseconds verdict_limit{300};
// The clock is read once in this many looks, since a polling thread looks every few hundred nanoseconds.
constexpr std::uint32_t looks_per_clock = 64;

// Returns the same key for equal calls of the same operation.
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

Watchdog::Watchdog(std::uint32_t context, const Members& members, ControlDesk& desk, Failure& failure,
                   const Journal& journal, const LiveOperations& live)
    : context_(context), members_(members), desk_(desk), failure_(failure), journal_(journal), live_(live) {}

// --- times ---

void Watchdog::look() {
  if (!live_.empty() && ++looks_ % looks_per_clock == 0) look_now();
}

void Watchdog::look_now() {
  const auto now = Deadline::Clock::now();
  for (Operation* operation = live_.newest(); operation != nullptr; operation = operation->next) {
    operation->stamp(now);
    if (now >= operation->deadline.when()) return expire(*operation);
    if (!operation->announced && now - operation->issued.load() >= long_wait) announce(*operation);
    if (failure_.happened()) return failure_.act();
  }
}

Deadline Watchdog::next_deadline() const {
  Deadline first = inquiry_ ? inquiry_->next_deadline() : Deadline::never();
  if (live_.empty()) return first;
  const auto now = Deadline::Clock::now();
  const bool announces = desk_.listens();
  for (Operation* operation = live_.newest(); operation != nullptr; operation = operation->next) {
    operation->stamp(now);
    first = earlier(first, operation->deadline);
    if (announces && !operation->announced)
      first = earlier(first, Deadline::at(operation->issued.load() + long_wait));
  }
  return first;
}

void Watchdog::announce(Operation& operation) {
  operation.announced = true;
  if (operation.kind != Operation::Kind::collective || !desk_.listens()) return;
  const CallNote note{context_, operation.sequence, operation.call};
  desk_.publish(topic_blocked, key_of(note), encode(note));
  look_for_leavers();
}

void Watchdog::expire(Operation& operation) {
  const Status why = timed_out(operation);
  const int judge = leader();
  const bool may_ask = !operation.expired && operation.kind == Operation::Kind::collective && desk_.listens();
  if (!may_ask) {
    const bool unanswered = operation.expired && judge != members_.rank();
    failure_.note(
        unanswered ? Status(why.code(), why.message() + "; " + members_.describe(judge) + " does not answer")
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
  desk_.send(members_.world_rank(judge), topic_expired, encode(note));
}

Status Watchdog::timed_out(const Operation& operation) const {
  std::string waiting;
  for (const int rank : operation.awaited())
    waiting += (waiting.empty() ? "" : ", ") + members_.describe_world_rank(rank);
  std::string text = members_.describe_this_rank() + ": " + operation.describe() + " was not over in time";
  if (!waiting.empty()) text += "; still waiting for " + waiting;
  const std::string_view library = operation.executing ? operation.execution->awaited_library() : "";
  if (!library.empty()) text += "; " + std::string(library) + " has not completed it";
  return Status(Code::timeout, text);
}

void Watchdog::look_for_leavers() {
  if (failure_.happened()) return;
  for (const Operation* operation = live_.newest(); operation != nullptr; operation = operation->next) {
    if (!operation->announced || !operation->executing || operation->execution->notices_leaving()) continue;
    for (const int rank : operation->awaited()) {
      if (!desk_.has_left(rank)) continue;
      return failure_.note(Status(Code::aborted, members_.describe_world_rank(rank) + " has left", rank));
    }
    // The executor runs operations over shared memory one at a time, and all of them wait for the ranks that
    // the current one awaits. So it is enough to look at one of them.
    return;
  }
}

// --- the leader ---

// Returns the first member that is alive, by its rank in the communicator.
int Watchdog::leader() const {
  for (int rank = 0; rank < members_.size(); ++rank) {
    const int world_rank = members_.world_rank(rank);
    if (!desk_.is_lost(world_rank) && !desk_.has_left(world_rank)) return rank;
  }
  return members_.rank();
}

void Watchdog::on_expired(int origin, const ExpiredNote& expired) {
  if (leader() != members_.rank()) return;
  inquire(expired);
  inquiry_->take_report(members_.rank_of(origin), expired);
}

void Watchdog::inquire(const ExpiredNote& expired) {
  if (inquiry_) return;
  inquiry_.emplace(expired, members_.size());
  inquiry_->take_answer(members_.rank(), {context_, expired.sequence, journal_.next_collective()});
  desk_.publish(topic_where, 0, encode(inquiry_->call()));
}

void Watchdog::on_where(int origin, const CallNote& call) {
  desk_.send(origin, topic_here, encode(HereNote{context_, call.sequence, journal_.next_collective()}));
}

void Watchdog::on_here(int origin, const HereNote& answer) {
  if (inquiry_) inquiry_->take_answer(members_.rank_of(origin), answer);
}

void Watchdog::conclude() {
  if (!inquiry_ || !inquiry_->is_over()) return;
  const Status verdict = inquiry_->verdict([this](int rank) { return members_.describe(rank); });
  const int culprit = inquiry_->culprit();
  inquiry_.reset();
  failure_.note(Status(verdict.code(), verdict.message(), culprit < 0 ? -1 : members_.world_rank(culprit)));
  failure_.act();
}

}  // namespace tutti
