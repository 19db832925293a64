#pragma once

#include <cstdint>
#include <span>

#include <tutti/buffer.h>
#include <tutti/memory.h>
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

// These functions return whether a rank uses the input of its call, and the output.
inline bool has_input(const Call& call, int rank) {
  switch (call.kind) {
    case CollectiveKind::barrier:
      return false;
    case CollectiveKind::broadcast:
    case CollectiveKind::scatter:
    case CollectiveKind::scatter_v:
      return rank == call.root;
    default:
      return true;
  }
}
inline bool has_output(const Call& call, int rank) {
  switch (call.kind) {
    case CollectiveKind::barrier:
      return false;
    case CollectiveKind::reduce:
    case CollectiveKind::gather:
    case CollectiveKind::gather_v:
      return rank == call.root;
    default:
      return true;
  }
}

// Returns the memory of the buffers that `rank` uses.
inline Memory memory_of(const Call& call, int rank) {
  if (call.kind == CollectiveKind::barrier) return Memory();
  return has_input(call, rank) ? call.in.memory : call.out.memory;
}

}  // namespace tutti
