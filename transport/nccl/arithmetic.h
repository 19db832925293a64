#pragma once

#include <cstdint>

#include <tutti/reduce_op.h>
#include <tutti/status.h>
#include <tutti/types.h>

#include "core/fingerprint.h"
#include "transport/nccl/api.h"

// These functions say how NCCL reduces elements.
namespace tutti::nccl {

// Returns ok if NCCL of this version can carry out the call, and otherwise the reason.
Status takes(const Fingerprint& call, int version);

// Returns whether the call adds or compares 8-bit floating-point elements.
bool reduces_float8(const Fingerprint& call);

// Returns NCCL's type for the elements of a reduction.
Type type_of(DataType type);
// Returns NCCL's operation, except for a premultiplied sum.
Op op_of(ReduceOp::Kind op, DataType type);
// Returns the factor of a premultiplied sum as an element of a floating-point type.
std::uint64_t factor_as(DataType type, double factor);

}  // namespace tutti::nccl
