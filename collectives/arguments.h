#pragma once

#include <cstdint>
#include <span>

#include <tutti/communicator.h>
#include <tutti/status.h>

#include "collectives/schedule/problem.h"
#include "core/fingerprint.h"

namespace tutti {

// A `Call` is one call of a collective as the user makes it. It does not own the elements, the reduction or
// the counts. A buffer that this rank does not need (the output of a reduce on a rank other than the root) is
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

// Returns whether two calls of one kind are equal, including the pointers. Calls that have counts are never
// equal.
inline bool is_same(const Call& a, const Call& b) {
  return a.in.data == b.in.data && a.out.data == b.out.data && a.in.count == b.in.count &&
         a.out.count == b.out.count && a.in.type == b.in.type && a.out.type == b.out.type &&
         a.in.memory == b.in.memory && a.out.memory == b.out.memory && a.root == b.root && *a.op == *b.op &&
         b.in_counts.empty() && b.out_counts.empty();
}

// Returns whether a call has no options, except possibly a time limit.
inline bool is_plain(const CallOptions& options) {
  return options.algorithm.empty() && options.stream == nullptr && options.region == nullptr;
}

// Returns the values of a call that must be equal on all ranks. The arguments of `call` need not be valid.
Fingerprint fingerprint(const Call& call, int rank, int size);

// Checks everything that one rank can check, and returns the problem for the algorithms. Errors:
// invalid_argument; unsupported if the reduction is not defined on the type. The problem refers to the counts
// of the call, so these must live as long as the problem.
Result<Problem> check(const Call& call, int rank, int size);

// Checks the arguments of one message, on a communicator of `size` ranks. Errors: invalid_argument;
// unsupported if the buffer lies in device memory.
Status check(const Transfer& transfer, int size);

// Returns `unsupported` if the options name a stream or a region. Does not check the algorithm.
Status check(const CallOptions& options);

// Returns the error of a call on memory that nothing in the library can use.
Status useless_memory();

}  // namespace tutti
