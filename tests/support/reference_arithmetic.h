#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/call.h"

namespace tutti::test {

// A `RankInput` is one rank's part in a collective: its call, and a copy of its input.
struct RankInput {
  Call call;  // its counts may no longer exist, so the next two members are copies of them
  std::vector<std::uint64_t> in_counts;
  std::vector<std::uint64_t> out_counts;
  std::vector<std::byte> data;  // empty if the collective does not use the rank's input
};

// Returns the call with copies of its counts. `take_input` copies the input later.
RankInput take_call(const Call& call);
// Copies the input of rank `rank` into `mine.data`. In a premultiplied sum, multiplies it by the factor of
// that rank.
void take_input(RankInput& mine, int rank);
// Returns whether the calls of two ranks have the same kind, root, type and count. Like NCCL, this function
// does not compare the reductions.
bool match(const RankInput& a, const RankInput& b);
// Writes the output of rank `rank`. Uses `Call::op` and `Call::out` of that rank only, since those of other
// ranks may no longer exist.
void write_output(const std::vector<RankInput>& all, int rank);

}  // namespace tutti::test
