#pragma once

#include <nanobind/nanobind.h>

#include <tutti/reduce_op.h>

namespace tutti::python {

namespace nb = nanobind;

// A ReduceOp, with the Python function that a user's one calls.
struct Reduction {
  ReduceOp op;
  nb::object function;
};

// By name or as an object. Throws `invalid_argument` for a name that is none, TypeError for anything else.
ReduceOp reduction(nb::handle given);

void bind_reduce_op(nb::module_& module);

}  // namespace tutti::python
