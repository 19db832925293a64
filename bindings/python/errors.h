#pragma once

#include <nanobind/nanobind.h>

#include <tutti/status.h>

namespace tutti::python {

namespace nb = nanobind;

// Returns the exception of tutti/errors.py for `status`, or None if `status` is ok. Requires the GIL.
nb::object error_object(const Status& status);

// Turns every Error that leaves C++ into the exception that `error_object` returns.
void bind_errors();

}  // namespace tutti::python
