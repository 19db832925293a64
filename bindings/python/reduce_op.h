#pragma once

#include <nanobind/nanobind.h>

#include <tutti/reduce_op.h>

namespace tutti::python {

namespace nb = nanobind;

// A `Reduction` is a ReduceOp. A user's operation also has the Python function that it calls.
struct Reduction {
  ReduceOp op;
  nb::object function;
};

// Converts an operation's name or a `Reduction` from Python. Throws `invalid_argument` for an unknown name,
// and TypeError for any other object.
ReduceOp reduction(nb::handle given);

void bind_reduce_op(nb::module_& module);

}  // namespace tutti::python
