#pragma once

#include <cstdint>
#include <span>

#include <tutti/buffer.h>
#include <tutti/reduce_op.h>
#include <tutti/types.h>

#include "core/fingerprint.h"

namespace tutti {

// A `Call` is one call of a collective as the user makes it. It does not own the elements, the reduction or
// the counts. A buffer that this rank does not need is ignored (for example the output of a reduce on a rank
// other than the root).
struct Call {
  CollectiveKind kind = CollectiveKind::barrier;
  Composite part_of = Composite::none;
  ConstBuffer in = {};
  Buffer out = {};
  const ReduceOp* op = &ReduceOp::sum;
  int root = 0;
  std::span<const std::uint64_t> in_counts = {};
  std::span<const std::uint64_t> out_counts = {};
};

}  // namespace tutti
