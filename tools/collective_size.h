#pragma once

#include <cstdint>

#include <tutti/types.h>

namespace tutti::tools {

// Returns whether the vector of this collective consists of one block per rank.
bool has_blocks(CollectiveKind kind);

// Converts a size in bytes, as nccl-tests counts it, to a number of elements: of one block if the kind has
// blocks, otherwise of the vector. `bytes` counts a rank's whole vector: for all_gather and gather the
// gathered vector, for reduce_scatter and scatter the vector before it is split, for all_to_all the vector
// that a rank sends. The result is at least 1, unless `bytes` is 0.
std::uint64_t count_for(CollectiveKind kind, std::uint64_t bytes, int ranks, DataType type);

}  // namespace tutti::tools
