#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/call.h"

namespace tutti::test {

// A `RankInput` is what one rank brings to a collective: its call, and a copy of its input.
struct RankInput {
  Call call;  // its counts point into the next two members
  std::vector<std::uint64_t> in_counts;
  std::vector<std::uint64_t> out_counts;
  std::vector<std::byte> data;  // empty if the rank's input is not used
};

// Copies the counts of a call, but not yet its input.
RankInput take_call(const Call& call);
// Copies the input of rank `rank`, times its factor in a premultiplied sum.
void take_input(RankInput& mine, int rank);
// Returns whether the calls can be carried out together. If not, a real library would hang.
bool match(const RankInput& a, const RankInput& b);
// Writes the output of rank `rank`, with the reduction of its own call. The other ranks' buffers and
// reductions may be gone.
void write_output(const std::vector<RankInput>& all, int rank);

}  // namespace tutti::test
