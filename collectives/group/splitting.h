#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tutti/communicator.h>

#include "collectives/group/group.h"

namespace tutti {

// `Splitting` is one rank's part in one `Communicator::split`. The constructor and `agree_on_number` are
// collective: they block until all ranks have called them, and throw `Error` on failure.
class Splitting {
 public:
  // Exchanges the colors of all ranks.
  Splitting(Group& group, int color, int key);

  // Returns the world ranks of the members with the same color, in the order of their keys.
  const std::vector<int>& ranks() const { return ranks_; }
  // Agrees with all ranks on the number of the new communicators, which no rank has used yet.
  std::uint32_t agree_on_number();
  // Returns the first member that has too few file descriptors to share memory (as its rank in the old
  // communicator). All members get the same result, so none of them waits for a rank that will not join.
  std::optional<int> first_in_want() const;

 private:
  // A `Vote` has the values that one rank sends.
  struct Vote {
    std::int64_t color = 0;
    std::int64_t key = 0;
    std::int64_t descriptors = 0;  // file descriptors that the rank could still open
  };
  bool take_everywhere(std::uint32_t number);
  void combine(const Buffer& number, const ReduceOp& op);

  Group& group_;
  std::vector<Vote> votes_;   // by rank
  std::vector<int> members_;  // ranks with the same color
  std::vector<int> ranks_;
};

}  // namespace tutti
