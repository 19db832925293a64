#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <tutti/version.h>

#include "bindings/python/errors.h"
#include "bindings/python/group.h"

NB_MODULE(_core, module) {
  using namespace tutti::python;
  // Warnings about leaked objects would be misleading, since tutti/__init__.py closes all
  // communicators when a program ends.
  nb::set_leak_warnings(false);
  bind_errors();
  bind_reduce_op(module);
  bind_work(module);
  bind_group(module);
  bind_functions(module);
  bind_allocation(module);
  module.attr("__version__") = std::string(tutti::version());
  module.attr("ANY_RANK") = tutti::any_rank;
  module.attr("ANY_TAG") = tutti::any_tag;
}
