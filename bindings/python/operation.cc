#include "bindings/python/operation.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <nanobind/stl/optional.h>

#include <tutti/deadline.h>

#include "bindings/python/errors.h"
#include "bindings/python/reduce_op.h"

namespace tutti::python {

namespace {

struct Orphan {
  Work work;
  Kept kept;
};

// Returns the operations whose handles were destroyed before the operations had ended, if they use
// Python objects. The GIL protects the list. The list is never destroyed, because releasing its
// objects needs an interpreter. The interpreter may already have ended at the end of the process.
std::vector<Orphan>& orphans() {
  static auto* const all = new std::vector<Orphan>;
  return *all;
}

// A wait notices Ctrl-C after at most this long.
constexpr std::chrono::milliseconds slice{100};

// Calls the Python function. This happens on the thread that notices the end of the operation. Does
// nothing if the interpreter has ended.
void call_back(PyObject* callback, const Status& status) {
  if (Py_IsInitialized() == 0) return;
  const nb::gil_scoped_acquire acquired;
  const nb::object function = nb::steal(callback);
  try {
    function(error_object(status));
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_KeyboardInterrupt)) {
      PyErr_SetInterrupt();  // Ctrl-C arrived while the callback ran, so it is raised again for the program
    } else {
      error.discard_as_unraisable(function);
    }
  }
}

}  // namespace

std::chrono::nanoseconds duration(double seconds) {
  constexpr double longest = 9e9;  // seconds; this is nearly three centuries
  if (std::isnan(seconds)) throw Error(Status(Code::invalid_argument, "a time must be a number, not NaN"));
  if (seconds < 0) throw Error(Status(Code::invalid_argument, "a time must not be negative"));
  if (seconds > longest) return std::chrono::nanoseconds::max();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

std::chrono::nanoseconds limit(std::optional<double> seconds) {
  return seconds ? std::max(duration(*seconds), std::chrono::nanoseconds(1)) : std::chrono::nanoseconds(0);
}

Operation::~Operation() {
  if (!work_.done() && (!kept_.arrays.empty() || kept_.op.is_valid())) {
    orphans().push_back({std::move(work_), std::move(kept_)});
  }
}

bool Operation::wait(std::optional<double> timeout) {
  if (!work_.done()) {
    const Deadline deadline = timeout ? Deadline::after(duration(*timeout)) : Deadline::never();
    for (bool over = false; !over;) {
      {
        const nb::gil_scoped_release released;
        try {
          over = work_.wait_for(std::min<std::chrono::nanoseconds>(slice, deadline.remaining()));
        } catch (const Error&) {
          if (!work_.done()) throw;
          over = true;  // the error is raised below, but an exception of a signal handler (Ctrl-C) goes first
        }
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!over && deadline.expired()) return false;
    }
  }
  kept_ = {};
  if (const Status status = work_.status(); !status.ok()) throw Error(status);
  return true;
}

void Operation::wait_on(std::uintptr_t stream) {
  const nb::gil_scoped_release released;
  work_.wait_on(reinterpret_cast<void*>(stream));
}

nb::object Operation::error() const { return error_object(work_.status()); }

void Operation::then(nb::callable callback) {
  Work work = work_;
  PyObject* const function = callback.release().ptr();
  const nb::gil_scoped_release released;
  work.then([function](const Status& status) { call_back(function, status); });
}

nb::object Operation::received() const {
  const Work::Received what = work_.received();
  return nb::make_tuple(what.source, what.tag, what.bytes);
}

void release_finished() {
  std::vector<Orphan>& all = orphans();
  if (all.empty()) return;
  // Finished operations are removed from the list before they are released, because releasing them
  // may run code that uses the list.
  const auto over = std::partition(all.begin(), all.end(), [](const Orphan& o) { return !o.work.done(); });
  const std::vector<Orphan> finished(std::make_move_iterator(over), std::make_move_iterator(all.end()));
  all.erase(over, all.end());
}

void bind_work(nb::module_& module) {
  nb::class_<Operation>(module, "Work", "An operation in flight, and the arrays that it works on.")
      .def("wait", &Operation::wait, nb::arg("timeout") = nb::none(),
           "Returns True when the operation has ended, and raises the error if it failed. Returns False if "
           "the operation is still running after `timeout` seconds; the operation continues. Other threads "
           "run meanwhile, and Ctrl-C ends the wait.")
      .def("wait_on", &Operation::wait_on, nb::arg("stream"),
           "Makes a CUDA stream, given by its address, wait until the library that carries out the operation "
           "has completed it. Returns at once. Raises UnsupportedError if no library carries out the "
           "operation.")
      .def("done", &Operation::done, "Returns whether the operation has ended, successfully or not.")
      .def("error", &Operation::error,
           "Returns the exception that says why the operation failed. Returns None while the operation runs, "
           "and after it has succeeded.")
      .def("then", &Operation::then, nb::arg("callback"),
           "Calls callback(error) when the operation has ended, on the thread that notices the end. If the "
           "operation has already ended, calls it at once. The callback must be short and must not wait.")
      .def_prop_ro("received", &Operation::received,
                   "The source, tag and bytes of the message, after a successful recv.");
}

}  // namespace tutti::python
