#include "collectives/run/registration_vote.h"

#include <atomic>
#include <cstring>

namespace tutti {

namespace {

struct ShownBuffers {  // in a slot's payload
  Place input;
  Place output;
};

}  // namespace

void RegistrationVote::show(Board& board, std::uint64_t number, const RunBinding& binding,
                            Sizes sizes) const {
  const ShownBuffers shown{registry_.find(binding.input, sizes.input),
                           registry_.find(binding.output, sizes.output)};
  std::memcpy(board.slot(board.rank(), number).payload, &shown, sizeof shown);
}

bool RegistrationVote::is_unanimous(Board& board, std::uint64_t number, const Fingerprint& call,
                                    Sizes sizes) {
  const auto resolve = [&](int rank, const Place& place, std::uint64_t bytes) {
    return place.allocation != 0 && place.bytes == bytes ? registry_.resolve(rank, place) : nullptr;
  };
  for (int rank = 0; rank < board.size(); ++rank) {
    ShownBuffers shown;
    std::memcpy(&shown, board.slot(rank, number).payload, sizeof shown);
    // Only the checked copy may be used, so the compiler must not read the payload again.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const Reach needed = reach(call.kind, call.root, rank);
    const auto at = static_cast<std::size_t>(rank);
    inputs_[at] = needed.input ? resolve(rank, shown.input, sizes.input) : nullptr;
    outputs_[at] = needed.output ? resolve(rank, shown.output, sizes.output) : nullptr;
    if (needed.input && inputs_[at] == nullptr) return false;
    if (needed.output && outputs_[at] == nullptr) return false;
  }
  return true;
}

}  // namespace tutti
