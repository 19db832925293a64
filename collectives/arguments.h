#pragma once

#include <cstdint>
#include <span>

#include <tutti/communicator.h>
#include <tutti/status.h>

#include "collectives/schedule/problem.h"
#include "core/fingerprint.h"

namespace tutti {

// A `Call` is one call of a collective as the user makes it. What it points to (elements, operation and
// counts) is the user's. A side that this rank does not have (the output of a reduce away from its root) is
// ignored.
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

// Tells whether two calls of one kind are the same, down to the pointers; never for calls that have counts.
inline bool is_same(const Call& a, const Call& b) {
  return a.in.data == b.in.data && a.out.data == b.out.data && a.in.count == b.in.count &&
         a.out.count == b.out.count && a.in.type == b.in.type && a.out.type == b.out.type &&
         a.root == b.root && *a.op == *b.op && b.in_counts.empty() && b.out_counts.empty();
}

// Returns what the ranks compare of a call. The arguments need not be valid.
Fingerprint fingerprint(const Call& call, int rank, int size);

// Checks everything that can be checked on one rank, and derives what algorithms need to know;
// invalid_argument says what is wrong. The counts of the problem are those of the call: it must live as long.
Result<Problem> check(const Call& call, int rank, int size);

// A point-to-point leg.
Status check(const Transfer& transfer, int size);

}  // namespace tutti
