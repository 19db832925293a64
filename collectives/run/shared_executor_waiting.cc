#include <algorithm>

#include "collectives/run/shared_executor.h"

// This file finds out what an operation over shared memory waits for, so that the rank can sleep until then.
namespace tutti {

// Returns what `arrived` would return, without acting on it. Also returns true if the peer has made a
// different call.
bool SharedExecutor::seen(int peer, std::uint32_t index) const {
  const Board::Slot& slot = board_->slot(peer, number_);
  const std::uint64_t theirs = slot.phase.load(std::memory_order_acquire);
  if (theirs >> Board::phase_bits != number_) return signals_before_ + index == 0;
  return !board_->calls(peer, number_, first_->binding->call) || theirs >= phase(signals_before_ + index);
}

bool SharedExecutor::could_go_on() const {
  switch (stage_) {
    case Stage::room:
      return room();
    case Stage::vote:
      return seen(static_cast<int>(cursor_), 1);
    case Stage::steps: {  // stopped at a step that awaits, or after a failure
      const Step& step = schedule_->steps[cursor_];
      return step.kind != StepKind::await || seen(step.peer, step.index);
    }
    case Stage::agree:
      return board_->all_finished(number_);
    default:
      return false;
  }
}

bool SharedExecutor::prepare_sleep() {
  if (stage_ == Stage::idle || stage_ == Stage::failed) return false;
  board_->sleep();
  asleep_ = true;
  for (int rank = 0; rank < board_->size(); ++rank) static_cast<void>(board_->finished(rank));
  return could_go_on();
}

void SharedExecutor::cancel_sleep() {
  if (asleep_) board_->wake();
  asleep_ = false;
}

std::vector<int> SharedExecutor::awaited() const {
  std::vector<int> ranks;
  if (stage_ == Stage::steps) {  // stopped at a step that awaits, often the first of several
    for (std::size_t i = cursor_; i < schedule_->steps.size(); ++i) {
      const Step& step = schedule_->steps[i];
      if (step.kind != StepKind::await) break;
      if (!seen(step.peer, step.index)) ranks.push_back(step.peer);
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }
  if (stage_ != Stage::room && stage_ != Stage::vote && stage_ != Stage::agree) return ranks;
  const std::uint64_t finished = stage_ == Stage::room ? needs_finished() : number_;
  for (int rank = 0; rank < board_->size(); ++rank) {
    if (rank == board_->rank()) continue;
    const bool missing = stage_ == Stage::vote ? !seen(rank, 1) : board_->finished(rank) < finished;
    if (missing) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace tutti
