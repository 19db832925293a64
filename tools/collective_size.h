#pragma once

#include <cstdint>

#include <tutti/types.h>

namespace tutti::tools {

// Kinds that deal in one block per rank; the others work on whole vectors.
bool has_blocks(CollectiveKind kind);

// `bytes` as nccl-tests mean it: the whole vector of a rank; for all_gather and gather the gathered one, for
// reduce_scatter and scatter the one before it is split, for all_to_all what one rank sends. Elements of the
// vector, or of one block: at least one, unless `bytes` is 0.
std::uint64_t count_for(CollectiveKind kind, std::uint64_t bytes, int ranks, DataType type);

}  // namespace tutti::tools
