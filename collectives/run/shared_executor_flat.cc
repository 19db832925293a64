#include <iterator>

#include "collectives/run/compute_step.h"
#include "collectives/run/shared_executor.h"
#include "core/relax.h"

// This file executes operations of a few bytes, which take a few hundred instructions.
namespace tutti {

// Returns true if the whole operation has completed. Otherwise the operation has not begun, or it has stopped
// at a step, and `advance` continues it from there.
bool SharedExecutor::run_flat(const SharedRun& run) {
  const std::uint64_t number = number_ + 1;
  if (number > Board::slots && !board_->all_finished(number - Board::slots)) return false;
  if (compared_ + Board::slots < number) return false;
  const RunBinding& binding = *run.binding;
  Board::Slot& mine = board_->slot(board_->rank(), number);
  mine.enter(binding.call);
  const Buffers buffers(binding.input, binding.output, nullptr, board_->payloads(number));
  bool signalled = false;
  number_ = number;
  for (const FlatSchedule::Step& step : run.flat->steps()) {
    switch (step.kind) {
      case StepKind::signal:
        mine.phase.store(phase(step.index), std::memory_order_release);
        signalled = true;
        break;
      case StepKind::await:
        if (flat_arrived(step, binding.call)) break;
        go_on_at(&step - run.flat->steps().data(), signalled);
        return false;
      default:
        compute_step(step, step.count, step.bytes, binding, [&](const FlatSchedule::Place& place) {
          return buffers.at(place.buffer, place.offset);
        });
    }
  }
  if (must_compare(binding.call)) {
    go_on_at(std::ssize(run.flat->steps()), signalled);
    return false;
  }
  if (!signalled) mine.phase.store(phase(0), std::memory_order_release);
  board_->finish(number);
  return true;
}

// Does what `patiently_arrived` does. But if the peer has made a different call, this function only returns
// false: it does not end the operation.
bool SharedExecutor::flat_arrived(const FlatSchedule::Step& step, const Fingerprint& call) {
  if (step.index == 0) return true;
  const Board::Slot& slot = board_->slot(step.peer, number_);
  const std::uint64_t wanted = phase(step.index);
  for (int looks = 0;; ++looks) {
    const std::uint64_t theirs = slot.phase.load(std::memory_order_acquire);
    if (theirs >= wanted && theirs >> Board::phase_bits == number_) break;
    if (!patient_ || looks == patient_looks) return false;
    if (looks >= eager_looks) relax();
  }
  if (!slot.calls(call)) return false;
  if (step.peer == next_ && compared_ + 1 == number_) compared_ = number_;
  return true;
}

// Makes `advance` continue the operation at the step `cursor`. The steps before it are done.
void SharedExecutor::go_on_at(std::ptrdiff_t cursor, bool signalled) {
  prepare();
  use(*first_->schedule);
  signals_before_ = 0;
  cursor_ = static_cast<std::uint32_t>(cursor);
  signalled_ = due_ = signalled;
}

}  // namespace tutti
