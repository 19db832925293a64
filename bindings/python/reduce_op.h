#pragma once

#include <nanobind/nanobind.h>

#include <tutti/reduce_op.h>

namespace tutti::python {

namespace nb = nanobind;

// `Reduction` is a ReduceOp, with the Python function that it calls if it is the user's own.
struct Reduction {
  ReduceOp op;
  nb::object function;
};

// Takes a name or an object. Throws `invalid_argument` for an unknown name, TypeError for anything else.
ReduceOp reduction(nb::handle given);

void bind_reduce_op(nb::module_& module);

}  // namespace tutti::python
