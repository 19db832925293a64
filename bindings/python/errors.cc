#include "bindings/python/errors.h"

#include <exception>

namespace tutti::python {

nb::object error_object(const Status& status) {
  if (status.ok()) return nb::none();
  const nb::object make = nb::module_::import_("tutti.errors").attr("make");
  const nb::object peer = status.peer() < 0 ? nb::object(nb::none()) : nb::object(nb::int_(status.peer()));
  return make(static_cast<int>(status.code()), status.to_string().c_str(), peer);
}

void bind_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      try {
        const nb::object object = error_object(error.status());
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())), object.ptr());
      } catch (nb::python_error& instead) {  // Ctrl-C arrived while Python code made the exception
        instead.restore();
      }
    }
  });
}

}  // namespace tutti::python
