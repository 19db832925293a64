#pragma once

#include <cstdint>

#include <tutti/types.h>

namespace tutti::tools {

// Returns whether the vector of this collective consists of one block per rank.
bool has_blocks(CollectiveKind kind);

// Returns the number of elements in one block if the kind has blocks, otherwise in the vector. `bytes` is the
// size of a rank's whole vector, as nccl-tests counts it: for all_gather and gather the gathered vector, for
// reduce_scatter and scatter the vector before it is split, for all_to_all the vector that a rank sends. The
// result is at least 1, unless `bytes` is 0.
std::uint64_t count_for(CollectiveKind kind, std::uint64_t bytes, int ranks, DataType type);

}  // namespace tutti::tools
