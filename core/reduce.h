#pragma once

#include <cstddef>

#include <tutti/reduce_op.h>
#include <tutti/status.h>
#include <tutti/types.h>

#include "core/reduce_tables.h"

namespace tutti {

// The kernel for a built-in operation; `avg` and `premultiplied_sum` give the one of `sum`. Null if the
// operation is not defined on the type, and for `user`.
ReduceKernel reduce_kernel(DataType type, ReduceOp::Kind op);

// A `Reducer` is a combination as the data path carries it: built once per operation, called for each
// fragment.
struct Reducer {
  ReduceKernel kernel = nullptr;
  const ReduceOp::User* user = nullptr;
  DataType type = DataType::uint8;
  // Receives the reason if a user's function throws. The function is then not called again, and its output is
  // undefined. If it is null, exceptions propagate.
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

// out[i] = in[i] * factor, for premultiplied sums. In place allowed. The factor is rounded to the type that
// is computed in. Integers are truncated towards zero and end at the bounds of their type. Does nothing on
// boolean.
void scale(const void* in, void* out, std::size_t count, DataType type, double factor);
// out[i] = in[i] / divisor, the end of an average. In place allowed. Integers are truncated towards zero.
// Does nothing on boolean.
void divide(const void* in, void* out, std::size_t count, DataType type, std::size_t divisor);

// The instruction set in use: "avx512", "avx2", "neon" or "generic".
const char* reduce_isa();

}  // namespace tutti
