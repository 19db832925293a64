#include "bindings/python/reduce_op.h"

#include <array>
#include <cctype>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nanobind/stl/string.h>

#include <tutti/status.h>
#include <tutti/types.h>

namespace tutti::python {

namespace {

nb::object bytes_view(const void* data, std::size_t bytes, int flags) {
  char* const memory = static_cast<char*>(const_cast<void*>(data));
  return nb::steal(PyMemoryView_FromMemory(memory, static_cast<Py_ssize_t>(bytes), flags));
}

// Calls a user's Python function on the driving thread, which does not hold the GIL. If the
// function raises an exception, the operation fails on all ranks with the exception's text, as it
// does if a C++ function throws.
void call_function(const void* left, const void* right, void* out, std::size_t count, DataType type,
                   void* state) {
  if (Py_IsInitialized() == 0) throw std::runtime_error("the Python interpreter has ended");
  const nb::gil_scoped_acquire acquired;
  const nb::handle function(static_cast<PyObject*>(state));
  const std::size_t bytes = count * size_of(type);
  try {
    function(bytes_view(left, bytes, PyBUF_READ), bytes_view(right, bytes, PyBUF_READ),
             bytes_view(out, bytes, PyBUF_WRITE), std::string(to_string(type)));
  } catch (const nb::python_error& error) {
    // Only the exception's text is kept. The Python exception itself must be destroyed while this thread
    // holds the GIL.
    const std::string text =
        nb::str(error.type().attr("__name__")).c_str() + std::string(": ") + nb::str(error.value()).c_str();
    // Ctrl-C is raised again, so that it reaches the program. The calls above come first, since Python code
    // that runs here after PyErr_SetInterrupt would raise the exception.
    if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    throw std::runtime_error(text);
  }
}

Reduction user(const std::string& name, const nb::callable& function, bool commutative) {
  return {ReduceOp::user(name, call_function, commutative, function.ptr()), function};
}

}  // namespace

ReduceOp reduction(nb::handle given) {
  if (const Reduction* known = nullptr; nb::try_cast<const Reduction*>(given, known) && known != nullptr)
    return known->op;
  std::string_view name;
  if (!PyUnicode_Check(given.ptr()))
    throw nb::type_error("op must be a tutti.ReduceOp or its name, such as \"sum\"");
  name = nb::borrow<nb::str>(given).c_str();
  const auto op = parse_reduce_op(name);
  if (!op) {
    throw Error(Status(Code::invalid_argument,
                       "there is no operation \"" + std::string(name) +
                           "\"; there are sum, product, min, max, avg, bit_and, bit_or and bit_xor"));
  }
  return *op;
}

void bind_reduce_op(nb::module_& module) {
  nb::class_<Reduction> reduce_op(module, "ReduceOp",
                                  "The operation that combines elements; a name such as \"sum\" also works.");
  reduce_op
      .def_static(
          "premultiplied_sum",
          [](double factor) {
            return Reduction{ReduceOp::premultiplied_sum(factor), {}};
          },
          nb::arg("factor"),
          "Multiplies each rank's input by its factor, and sums. Ranks may have different factors.")
      .def_static("user", &user, nb::arg("name"), nb::arg("function"), nb::arg("commutative") = true,
                  "Makes an operation from function(left, right, out, dtype), which gets bytes and the name "
                  "of their type, and writes left op right into out. The function must be associative, and "
                  "every rank must pass the same function under the same name. A function that is not "
                  "commutative is applied in the order of ranks. If the function raises on one rank, the "
                  "operation fails with AbortedError on all ranks.")
      .def_prop_ro(
          "name", [](const Reduction& self) { return self.op.name(); }, "Its name.")
      .def("__repr__", [](const Reduction& self) { return "tutti.ReduceOp(" + self.op.name() + ")"; });
  for (const ReduceOp& op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max, ReduceOp::avg,
                             ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor}) {
    std::string name = op.name();
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    reduce_op.attr(name.c_str()) = nb::cast(Reduction{op, {}});
  }
}

}  // namespace tutti::python
