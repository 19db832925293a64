#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/utils/pybind.h>

#include "bindings/torch/backend.h"

namespace {

namespace py = pybind11;
using tutti_torch::ProcessGroupTutti;
using tutti_torch::World;

// Raises KeyboardInterrupt after Ctrl-C. Only Python's main thread handles signals, so this does nothing on
// other threads.
void raise_interrupt() {
  if (Py_IsInitialized() == 0) return;
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// Ends the group without holding the GIL, since the backend's threads may need the GIL.
void release_without_gil(ProcessGroupTutti* backend) {
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
    const py::gil_scoped_release released;
    backend->end();
  } else {
    backend->end();
  }
}

// `global_ranks` are the group's members, as ranks of the default group. torch passes an empty list
// for the default group itself.
c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                         const std::chrono::duration<float>& timeout,
                                         const std::vector<int>& global_ranks) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
  tutti_torch::Place from;
  if (!global_ranks.empty()) from = {World::of_default_group(), global_ranks};
  auto group = c10::make_intrusive<ProcessGroupTutti>(store, rank, size, milliseconds, std::move(from));
  if (global_ranks.empty()) group->serve_as_default();
  return group;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "torch.distributed's backend \"tutti\"";
  tutti_torch::count_forks(ProcessGroupTutti::forget_all);
  tutti_torch::check_interrupt = raise_interrupt;
  tutti_torch::before_destruction = release_without_gil;
  module.def("create", &create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
             py::arg("global_ranks") = std::vector<int>(), py::call_guard<py::gil_scoped_release>());
  module.def("leave", &ProcessGroupTutti::end_all, py::call_guard<py::gil_scoped_release>());
  module.def("version", &tutti_version);
}
