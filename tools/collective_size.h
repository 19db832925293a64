#pragma once

#include <cstdint>

#include <tutti/types.h>

namespace tutti::tools {

// Returns whether the vector of this collective consists of one block per rank.
bool has_blocks(CollectiveKind kind);

// If the kind has blocks, returns the number of elements in one block, otherwise the number in the whole
// vector. `bytes` is the size of the whole vector, counted as in nccl-tests: in all_gather and gather this is
// the gathered vector, in reduce_scatter and scatter the vector before it is split, and in all_to_all the
// vector that a rank sends. The result is 0 for a barrier or if `bytes` is 0, and otherwise at least 1.
std::uint64_t count_for(CollectiveKind kind, std::uint64_t bytes, int ranks, DataType type);

}  // namespace tutti::tools
