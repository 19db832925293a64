#include "collectives/run/shared_executor.h"
#include "collectives/schedule/algorithm.h"

// This file compares the collectives that ranks call over shared memory.
namespace tutti {

Status SharedExecutor::mismatch(int peer, std::uint64_t number) {
  disputed_ = number;
  const int world_rank = ranks_[static_cast<std::size_t>(peer)];
  return Status(Code::mismatch,
                mesh_.peer(world_rank).describe() + " called " + describe(board_->call(peer, number)) +
                    ", where " + mesh_.peer(mesh_.rank()).describe() + " called " +
                    describe(board_->call(board_->rank(), number)),
                world_rank);
}

std::optional<Fingerprint> SharedExecutor::called(int rank, std::uint64_t number) const {
  const Board::Slot& slot = board_->slot(rank, number);
  const auto there = [&] {
    return rank == board_->rank() ||
           slot.phase.load(std::memory_order_acquire) >> Board::phase_bits == number;
  };
  if (!there()) return std::nullopt;
  const Fingerprint call = board_->call(rank, number);
  return there() ? std::optional(call) : std::nullopt;
}

Status SharedExecutor::compare() { return stage_ == Stage::idle ? compare(number_) : Status(); }

// In some operations a rank awaits no other rank. For example, if two ranks both call a broadcast as its
// root, neither waits for the other, and neither would notice the mistake. So each rank compares its calls
// with those that the next rank has made so far. If the ranks' calls with the same number differ, at least
// one rank notices this, no later than in the next operation in which ranks wait for each other.
Status SharedExecutor::compare(std::uint64_t last) {
  for (; compared_ < last; ++compared_) {
    const std::uint64_t number = compared_ + 1;
    const Board::Slot& slot = board_->slot(next_, number);
    const std::uint64_t entered = slot.phase.load(std::memory_order_acquire) >> Board::phase_bits;
    if (entered < number) break;
    const Fingerprint ours = board_->call(board_->rank(), number);
    if (board_->calls(next_, number, ours)) continue;
    Status differs = mismatch(next_, number);
    const bool gone_on = slot.phase.load(std::memory_order_relaxed) >> Board::phase_bits != number;
    if (!gone_on) return differs;
  }
  return Status();
}

}  // namespace tutti
