#include "collectives/group/journal.h"

#include <algorithm>

namespace tutti {

namespace {

constexpr std::size_t collectives_window = 256;
constexpr std::size_t transfers_window = 64;
// Among the operations that complete at once, one in `operations_per_clock` is timed. With a trace, all of
// them are timed. `operations_per_clock` must be a power of two.
constexpr std::uint64_t operations_per_clock = 16;

}  // namespace

Journal::Journal(std::uint32_t context, Trace* trace)
    : context_(context),
      trace_(trace),
      clock_mask_(trace == nullptr ? operations_per_clock - 1 : 0),
      collectives_(collectives_window, History::Full::grow),
      transfers_(transfers_window, History::Full::forget) {}

void Journal::begin(Operation& operation) {
  operation.started = beginning(operation.sequence);
  history_of(operation).begin(
      {.number = operation.sequence,
       .call = operation.call,
       .algorithm = operation.algorithm,
       .tag = operation.kind == Operation::Kind::transfers ? operation.transfers.tag() : 0,
       .issued = operation.queued,
       .started = operation.started});
}

void Journal::give_up(const Operation& operation) {
  if (operation.kind == Operation::Kind::collective)
    first_failed_ = std::min(first_failed_, operation.sequence);
}

// An operation gets an end time only if it is timed, or if `issued` is set. To save a reading of the clock,
// `issued` is set only for operations that do not end quickly.
void Journal::end(const Operation& operation, const Status& status) {
  const bool failed = !status.ok();
  const auto stamped = operation.issued.load(std::memory_order_relaxed);
  const bool lasted = stamped != Deadline::Clock::time_point();
  const History::Time since = lasted ? History::time_of(stamped) : 0;
  const bool wanted = lasted || timed(operation.sequence);
  const auto state = failed ? History::State::failed : History::State::finished;
  const History::Time ended = wanted ? std::max(since, now()) : 0;
  history_of(operation).end(operation.sequence, state, since, ended);
  if (trace_ == nullptr) return;
  const History::Entry entry{.number = operation.sequence,
                             .call = operation.call,
                             .algorithm = operation.algorithm,
                             .state = state,
                             .issued = operation.queued,
                             .started = operation.started};
  trace_end(operation, entry, ended);
}

void Journal::end_at_once(const Operation& operation, std::uint64_t tag, History::Time began) {
  const bool collective = operation.kind == Operation::Kind::collective;
  const History::Entry entry{.number = operation.sequence,
                             .call = operation.call,
                             .algorithm = collective ? operation.algorithm : std::uint8_t{0},
                             .tag = tag,
                             .started = began};
  const History::Time ended = now();
  history_of(operation).at_once(entry, ended);
  if (trace_ != nullptr) trace_end(operation, entry, ended);
}

void Journal::trace_end(const Operation& operation, const History::Entry& entry, History::Time ended) const {
  trace_->add({.kind = Trace::Event::Kind::operation,
               .failed = entry.state == History::State::failed,
               .transfer = operation.kind == Operation::Kind::transfers,
               .context = context_,
               .number = entry.number,
               .call = entry.call,
               .algorithm = entry.algorithm,
               .issued = entry.issued,
               .began = entry.started,
               .ended = ended});
}

ContextEvents::Known Journal::find(std::uint64_t number) const {
  const History::Known known = collectives_.find(number);
  const bool live = known.state == History::State::live;
  return {known.call, known.call != nullptr ? !live : known.newer};
}

std::uint64_t Journal::completed() const { return std::min(first_failed_, next_collective()); }

}  // namespace tutti
