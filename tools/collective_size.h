#pragma once

#include <cstdint>

#include <tutti/types.h>

namespace tutti::tools {

// Returns whether a kind has one block per rank; the others work on whole vectors.
bool has_blocks(CollectiveKind kind);

// Converts `bytes`, in the sense of nccl-tests, to the elements of the vector, or of one block. The bytes are
// those of a rank's whole vector: for all_gather and gather of the gathered one, for reduce_scatter and
// scatter of the one before it is split, for all_to_all of the one that a rank sends. The result is at least
// one element, unless `bytes` is 0.
std::uint64_t count_for(CollectiveKind kind, std::uint64_t bytes, int ranks, DataType type);

}  // namespace tutti::tools
