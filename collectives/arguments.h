#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tutti/communicator.h>
#include <tutti/status.h>

#include "collectives/schedule/problem.h"
#include "core/collective_args.h"

namespace tutti {

inline const ConstBuffer no_input;
inline const Buffer no_output;

// One call as the user makes it: it refers to the arguments, and must not outlive them. Buffers that this
// rank does not have (the output of a reduce away from its root) are left empty.
struct Call {
  CollectiveKind kind = CollectiveKind::barrier;
  Composite part_of = Composite::none;
  const ConstBuffer& in = no_input;
  const Buffer& out = no_output;
  const ReduceOp& op = ReduceOp::sum;
  int root = 0;
  std::span<const std::uint64_t> in_counts = {};
  std::span<const std::uint64_t> out_counts = {};
  bool one_buffer = false;  // the in-place form: `out` is all there is
};

// What is kept of a call, to know it again.
class CallMemory {
 public:
  CallMemory() = default;
  explicit CallMemory(const Call& call);
  // Whether it is the same down to the pointers; never for calls that refer to counts.
  bool knows(const Call& call) const;

 private:
  CollectiveKind kind_ = CollectiveKind::barrier;
  ConstBuffer in_;
  Buffer out_;
  ReduceOp op_ = ReduceOp::sum;
  int root_ = 0;
  bool one_buffer_ = false;
};

inline bool CallMemory::knows(const Call& call) const {
  return in_.data == call.in.data && out_.data == call.out.data && in_.count == call.in.count &&
         out_.count == call.out.count && in_.type == call.in.type && out_.type == call.out.type &&
         kind_ == call.kind && root_ == call.root && one_buffer_ == call.one_buffer && op_ == call.op &&
         call.in_counts.empty() && call.out_counts.empty();
}

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
