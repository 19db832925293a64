#include <algorithm>

#include "collectives/group/group.h"

// Members that call different things: which of them is the odd one.
//
// The rank that notices knows of two calls only. It asks all members what they call as that operation, and
// reads on the board what it can; once more than half are known to call the same, the verdict is about one
// that does not. If that is not known soon, the two calls that were noticed are named, and nobody is blamed.
namespace tutti {

namespace {

constexpr std::chrono::milliseconds hearing_limit{100};
// Ranks that share memory do not ring for those that only want to know what they call.
constexpr std::chrono::milliseconds board_pause{2};

using Calls = std::vector<std::optional<Fingerprint>>;

struct Verdict {
  int odd = -1;    // nobody is
  int usual = -1;  // a rank of the majority
};

Verdict find_odd_one(const Calls& calls) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i] || 2 * std::ranges::count(calls, calls[i]) <= std::ssize(calls)) continue;
    const auto differs = [&](const auto& call) { return call && *call != *calls[i]; };
    const auto odd = std::ranges::find_if(calls, differs);
    if (odd != calls.end()) return Verdict{static_cast<int>(odd - calls.begin()), static_cast<int>(i)};
  }
  return {};
}

}  // namespace

void Group::open_dispute(Dispute dispute) {
  if (dispute_ != nullptr || failure_.happened()) return;
  dispute_ = std::make_unique<Dispute>(std::move(dispute));
  if (SharedExecutor* const executor = shared_.executor()) executor->halt();
  dispute_->until = Deadline::after(hearing_limit);
  dispute_->calls.resize(members_.world_ranks().size());
  const auto own = static_cast<std::size_t>(members_.rank());
  if (dispute_->sequence) {
    const Known ours = operation(*dispute_->sequence);
    if (ours.call != nullptr) dispute_->calls[own] = *ours.call;
  }
  const bool asks = dispute_->calls[own] && size() > 2 && world_->desk.listens();
  if (asks) {
    const CallNote note{context_, *dispute_->sequence, *dispute_->calls[own]};
    world_->desk.publish(topic_differs, 0, encode(note));
  } else if (size() == 2 || dispute_->number == 0) {
    dispute_->until = Deadline::after(std::chrono::nanoseconds(0));  // nobody can be heard
  }
  settle_dispute();
}

// `operation`: that failed by it, if one did.
void Group::dispute_on_board(const Operation* operation, const Status& noticed) {
  Dispute dispute{.number = shared_.executor()->disputed(), .noticed = noticed};
  if (operation != nullptr && shared_.executor()->number() == dispute.number)
    dispute.sequence = operation->sequence;
  open_dispute(std::move(dispute));
}

// Driving, also inside a callback of the mesh.
void Group::settle_dispute() {
  Dispute& dispute = *dispute_;
  for (int rank = 0; dispute.number != 0 && rank < size(); ++rank) {
    auto& call = dispute.calls[static_cast<std::size_t>(rank)];
    if (!call) call = shared_.executor()->called(rank, dispute.number);
  }
  const Verdict verdict = find_odd_one(dispute.calls);
  const bool all_known =
      std::ranges::all_of(dispute.calls, [](const auto& call) { return call.has_value(); });
  if (verdict.odd < 0 && !all_known && !dispute.until.expired()) return;
  const std::unique_ptr<Dispute> settled = std::move(dispute_);
  if (verdict.odd < 0) return failure_.note(Status(Code::mismatch, settled->noticed.message()));
  const auto calls = [&](int rank) {
    return describe(rank) + " called " + describe(*settled->calls[static_cast<std::size_t>(rank)]);
  };
  const std::string number =
      settled->sequence ? " as operation " + std::to_string(*settled->sequence) : std::string();
  failure_.note(Status(Code::mismatch,
                       calls(verdict.odd) + number + ", where " + calls(verdict.usual) + ", as most did",
                       members_.world_rank(verdict.odd)));
}

Deadline Group::next_look_at_dispute() const {
  if (dispute_ == nullptr) return Deadline::never();
  return dispute_->number == 0 ? dispute_->until : earlier(dispute_->until, Deadline::after(board_pause));
}

// The call of a member that has been asked, or that asks itself.
void Group::hear_call(int origin, const CallNote& theirs) {
  if (dispute_ == nullptr || dispute_->sequence != theirs.sequence) return;
  dispute_->calls[static_cast<std::size_t>(members_.rank_of(origin))] = theirs.call;
  settle_dispute();
}

void Group::ask_here(int origin, std::uint64_t sequence) {
  if (asked_.size() < members_.world_ranks().size()) asked_.push_back({origin, sequence});
  answer_asked();
}

// Where this rank has not come yet, it answers when it does.
void Group::answer_asked() {
  std::erase_if(asked_, [this](const Asked& asked) {
    const Known ours = operation(asked.sequence);
    if (ours.call == nullptr) return ours.finished;
    world_->desk.send(asked.origin, topic_called, encode(CallNote{context_, asked.sequence, *ours.call}));
    return true;
  });
}

void Group::on_mismatch(int peer, std::uint64_t sequence, const Fingerprint* theirs, const Status& why) {
  if (theirs == nullptr || !members_.contains(peer)) return failure_.note(why);
  open_dispute({.sequence = sequence, .noticed = why});
  hear_call(peer, CallNote{context_, sequence, *theirs});
}

void Group::compare(int origin, const CallNote& theirs) {
  const Known ours = operation(theirs.sequence);
  if (ours.call == nullptr || *ours.call == theirs.call) return;
  const std::string text = mesh_.peer(origin).describe() + " called " + describe(theirs.call) +
                           " as operation " + std::to_string(theirs.sequence) + ", where " +
                           members_.describe_this_rank() + " called " + describe(*ours.call);
  on_mismatch(origin, theirs.sequence, &theirs.call, Status(Code::mismatch, text));
}

}  // namespace tutti
