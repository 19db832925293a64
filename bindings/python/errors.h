#pragma once

#include <nanobind/nanobind.h>

#include <tutti/status.h>

namespace tutti::python {

namespace nb = nanobind;

// The exception of tutti/errors.py that `status` is; None if it is none. With the GIL.
nb::object error_object(const Status& status);

// Makes Error that exception where it leaves C++.
void bind_errors();

}  // namespace tutti::python
