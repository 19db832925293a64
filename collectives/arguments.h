#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tutti/collectives/communicator.h>
#include <tutti/collectives/problem.h>
#include <tutti/core/collective_args.h>
#include <tutti/core/status.h>

namespace tutti {

// One call as the user made it. Buffers that this rank does not have (the output of a reduce away from its
// root) are left empty.
struct Call {
  CollectiveKind kind = CollectiveKind::barrier;
  ConstBuffer in = {};
  Buffer out = {};
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  std::span<const std::uint64_t> in_counts = {};
  std::span<const std::uint64_t> out_counts = {};
  bool one_buffer = false;  // the in-place form: `out` is all there is
};

// Whether two calls are the same down to the pointers; not for those that refer to counts.
bool same_call(const Call& a, const Call& b);

struct CheckedCall {
  CollectiveArgs args;
  Problem problem;
  // What the counts of `problem` point to where the user gave none: away from the root of gather_v and
  // scatter_v.
  std::vector<std::uint64_t> own_counts;
};

// Checks everything that can be checked on one rank and derives count, type and in-place; invalid_argument
// says what is wrong.
Result<CheckedCall> check(const Call& call, int rank, int size);

// A point-to-point leg.
Status check(const Transfer& transfer, int size);

}  // namespace tutti
