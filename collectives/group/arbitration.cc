#include "collectives/group/arbitration.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

#include "collectives/group/odd_one.h"
#include "collectives/schedule/algorithm.h"

namespace tutti {

namespace {

constexpr std::chrono::milliseconds hearing_limit{100};
// During a dispute, this rank looks at the board at this interval, since the other ranks do not wake it when
// they write their calls there.
constexpr std::chrono::milliseconds board_pause{2};

}  // namespace

Arbitration::Arbitration(std::uint32_t context, const Members& members, ControlDesk& desk, Failure& failure,
                         const Journal& journal, SharedCollectives& shared)
    : context_(context),
      members_(members),
      desk_(desk),
      failure_(failure),
      journal_(journal),
      shared_(shared) {}

// --- what this rank notices ---

void Arbitration::on_mismatch(int peer, std::uint64_t sequence, const Fingerprint* theirs,
                              const Status& why) {
  if (theirs == nullptr || !members_.contains(peer)) return failure_.note(why);
  open({.sequence = sequence, .noticed = why});
  on_answer(peer, CallNote{context_, sequence, *theirs});
}

void Arbitration::on_mismatch_on_board(const Operation* operation, const Status& noticed) {
  const SharedExecutor* const executor = shared_.executor();
  if (executor == nullptr || executor->disputed() == 0) return;
  Dispute dispute{.number = executor->disputed(), .noticed = noticed};
  if (operation != nullptr && executor->number() == dispute.number) dispute.sequence = operation->sequence;
  open(std::move(dispute));
}

void Arbitration::on_blocked(int origin, const CallNote& theirs) {
  const ContextEvents::Known ours = journal_.find(theirs.sequence);
  if (ours.call == nullptr || *ours.call == theirs.call) return;
  const std::string text = members_.describe_world_rank(origin) + " called " + describe(theirs.call) +
                           " as operation " + std::to_string(theirs.sequence) + ", where " +
                           members_.describe_this_rank() + " called " + describe(*ours.call);
  on_mismatch(origin, theirs.sequence, &theirs.call, Status(Code::mismatch, text));
}

void Arbitration::open(Dispute dispute) {
  if (dispute_ != nullptr || failure_.happened()) return;
  dispute_ = std::make_unique<Dispute>(std::move(dispute));
  if (SharedExecutor* const executor = shared_.executor()) executor->halt();
  dispute_->until = Deadline::after(hearing_limit);
  dispute_->calls.resize(static_cast<std::size_t>(members_.size()));
  const auto own = static_cast<std::size_t>(members_.rank());
  if (dispute_->sequence) {
    const ContextEvents::Known ours = journal_.find(*dispute_->sequence);
    if (ours.call != nullptr) dispute_->calls[own] = *ours.call;
  }
  const bool asks = dispute_->calls[own] && members_.size() > 2 && desk_.listens();
  if (asks) {
    const CallNote note{context_, *dispute_->sequence, *dispute_->calls[own]};
    desk_.publish(topic_differs, 0, encode(note));
  } else if (members_.size() == 2 || dispute_->number == 0) {
    dispute_->until = Deadline::after(std::chrono::nanoseconds(0));  // no other rank can answer
  }
  settle();
}

// --- the verdict ---

void Arbitration::settle() {
  Dispute& dispute = *dispute_;
  for (int rank = 0; dispute.number != 0 && rank < members_.size(); ++rank) {
    auto& call = dispute.calls[static_cast<std::size_t>(rank)];
    if (!call) call = shared_.executor()->called(rank, dispute.number);
  }
  const std::optional<OddOne> verdict = find_odd_one(dispute.calls);
  const bool all_known =
      std::ranges::all_of(dispute.calls, [](const auto& call) { return call.has_value(); });
  if (!verdict && !all_known && !dispute.until.expired()) return;
  const std::unique_ptr<Dispute> settled = std::move(dispute_);
  if (!verdict) return failure_.note(Status(Code::mismatch, settled->noticed.message()));
  const auto calls = [&](int rank) {
    return members_.describe(rank) + " called " + describe(*settled->calls[static_cast<std::size_t>(rank)]);
  };
  const std::string number =
      settled->sequence ? " as operation " + std::to_string(*settled->sequence) : std::string();
  failure_.note(Status(Code::mismatch,
                       calls(verdict->odd) + number + ", where " + calls(verdict->usual) + ", as most did",
                       members_.world_rank(verdict->odd)));
}

void Arbitration::settle_now() {
  if (dispute_ == nullptr) return;
  dispute_->until = Deadline::after(std::chrono::nanoseconds(0));
  settle();
}

void Arbitration::poll() {
  if (!asked_.empty()) answer_asked();
  if (dispute_ != nullptr) settle();
}

Deadline Arbitration::next_deadline() const {
  if (dispute_ == nullptr) return Deadline::never();
  return dispute_->number == 0 ? dispute_->until : earlier(dispute_->until, Deadline::after(board_pause));
}

// --- what members write ---

void Arbitration::on_answer(int origin, const CallNote& theirs) {
  if (dispute_ == nullptr || dispute_->sequence != theirs.sequence) return;
  dispute_->calls[static_cast<std::size_t>(members_.rank_of(origin))] = theirs.call;
  settle();
}

void Arbitration::on_question(int origin, const CallNote& theirs) {
  on_answer(origin, theirs);
  if (std::ssize(asked_) < members_.size()) asked_.push_back({origin, theirs.sequence});
  answer_asked();
}

// Answers the questions about operations that this rank has reached. The other questions wait until this rank
// reaches their operations.
void Arbitration::answer_asked() {
  std::erase_if(asked_, [this](const Asked& asked) {
    const ContextEvents::Known ours = journal_.find(asked.sequence);
    if (ours.call == nullptr) return ours.finished;
    desk_.send(asked.origin, topic_called, encode(CallNote{context_, asked.sequence, *ours.call}));
    return true;
  });
}

}  // namespace tutti
