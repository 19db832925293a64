#pragma once

#include "collectives/schedule/algorithms/layout.h"

// These are the reduce-scatter of Träff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms"
// (2024), and its mirror image, the all-gather of Bruck et al. (1997). Their messages follow a circulant
// graph. For every number p of ranks, they need only ceil(log2 p) rounds, and send the least possible volume.
// Blocks stay in their places in the vector, so they need not be rotated at the end. If a round's blocks wrap
// around the end of the vector, they are sent as two messages.
namespace tutti {

// Combines block i of the inputs of all ranks into `result` on rank i. `work` has room for all blocks, and
// holds partial sums. `work` may be the output, and `result` may be this rank's block of `work`. Needs a
// commutative operation. Cost: ceil(log2 p) rounds; (p-1)/p of the vector is sent and combined.
void circulant_reduce_scatter(ScheduleBuilder& builder, const Problem& problem, const Blocks& blocks,
                              const Slice& work, const Slice& result);

// Sends block i of rank i's `whole` to every rank's `whole`, for all i. Cost: ceil(log2 p) rounds; (p-1)/p of
// the vector is sent.
void circulant_all_gather(ScheduleBuilder& builder, const Problem& problem, const Blocks& blocks,
                          const Slice& whole);

}  // namespace tutti
