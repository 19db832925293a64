#pragma once

#include <cstddef>

#include <tutti/reduce_op.h>
#include <tutti/status.h>
#include <tutti/types.h>

#include "core/reduce_tables.h"

namespace tutti {

// Returns the kernel for a built-in operation. For `avg` and `premultiplied_sum` it is the kernel of `sum`.
// Returns null if the operation is not defined on the type, and for `user`.
ReduceKernel reduce_kernel(DataType type, ReduceOp::Kind op);

// A `Reducer` combines elements on the data path. It is built once for each operation, and called for each
// fragment of data.
struct Reducer {
  ReduceKernel kernel = nullptr;
  const ReduceOp::User* user = nullptr;
  DataType type = DataType::uint8;
  // If `failure` is null, exceptions of a user's function propagate. Otherwise, when the function throws,
  // `*failure` receives the reason. After that the function is not called again, and the output is undefined.
  Status* failure = nullptr;

  Reducer() = default;
  Reducer(DataType data_type, const ReduceOp& op)
      : kernel(reduce_kernel(data_type, op.kind())), user(op.user_function()), type(data_type) {}

  void operator()(const void* left, const void* right, void* out, std::size_t count) const {
    if (user != nullptr) {
      by_user(left, right, out, count);
    } else {
      kernel(left, right, out, count);
    }
  }
  bool failed() const { return failure != nullptr && !failure->ok(); }

 private:
  void by_user(const void* left, const void* right, void* out, std::size_t count) const;
};

// Computes out[i] = in[i] * factor, for premultiplied sums. It may work in place. The factor is rounded to
// the type of the computation. Integers are truncated towards zero and saturate at the bounds of their type.
// It does nothing to booleans.
void scale(const void* in, void* out, std::size_t count, DataType type, double factor);
// Computes out[i] = in[i] / divisor, the last step of an average. It may work in place. Integers are
// truncated towards zero. It does nothing to booleans.
void divide(const void* in, void* out, std::size_t count, DataType type, std::size_t divisor);

// Returns the instruction set in use: "avx512", "avx2", "neon" or "generic".
const char* reduce_isa();

}  // namespace tutti
