#pragma once

#include <cstdint>

#include <tutti/types.h>

namespace tutti::tools {

// Returns whether the vector of this collective consists of one block per rank.
bool has_blocks(CollectiveKind kind);

// Returns the number of elements in one block, or in the whole vector if the kind has no blocks.
// `bytes` is the size of the whole vector, counted as in nccl-tests. For all_gather and gather,
// this is the gathered vector. For reduce_scatter and scatter, it is the vector before it is split.
// For all_to_all, it is the vector that a rank sends. The result is 0 for a barrier and if `bytes`
// is 0. Otherwise it is at least 1.
std::uint64_t count_for(CollectiveKind kind, std::uint64_t bytes, int ranks, DataType type);

}  // namespace tutti::tools
