#pragma once

#include <nanobind/nanobind.h>

#include <tutti/reduce_op.h>

namespace tutti::python {

namespace nb = nanobind;

// A `Reduction` is a ReduceOp, with the Python function that it calls if it is a user's operation.
struct Reduction {
  ReduceOp op;
  nb::object function;
};

// Converts a name or an object. Throws `invalid_argument` for an unknown name, and TypeError for anything
// else.
ReduceOp reduction(nb::handle given);

void bind_reduce_op(nb::module_& module);

}  // namespace tutti::python
