#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include <tutti/status.h>

#include "collectives/group/founding.h"

namespace tutti {

// A `RollCall` exchanges votes among some ranks of a communicator, by messages that do not involve the other
// ranks. The lowest of the ranks collects the votes, and sends all votes to each rank.
class RollCall {
 public:
  // `ranks` are ranks of `group`. Calls that overlap in time need different keys. If `limit` is zero, the
  // time limit is the world's.
  RollCall(Group& group, std::vector<int> ranks, int key, std::chrono::nanoseconds limit);

  // Returns ok if the list contains this rank, only ranks of the group, and none of them twice.
  Status check() const;
  // Returns a hash of the list.
  std::int64_t digest() const;
  // Exchanges the votes. The color of `mine` must be the digest. Blocks. Throws `Error`: mismatch if a rank
  // passes another list, or any error that a message can fail with.
  void exchange(const Vote& mine, std::span<Vote> votes);

 private:
  void collect(const Vote& mine, std::span<Vote> votes);
  void follow(const Vote& mine, std::span<Vote> votes);
  Status lists_others(int rank) const;
  Transfer leg(Transfer::Direction direction, int peer, std::span<Vote> votes) const;

  Group& group_;
  const std::vector<int> ranks_;
  const std::uint64_t tag_;
  const std::chrono::nanoseconds limit_;
};

}  // namespace tutti
