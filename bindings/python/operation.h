#pragma once

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include <tutti/work.h>

#include "bindings/python/array.h"

namespace tutti::python {

// The objects that must stay alive until an operation is over.
struct Kept {
  std::vector<Array> arrays;
  nb::object op;
};

// `Operation` is a `Work` with the arrays that it works on. It requires the GIL, and releases it wherever it
// may block, since a driving thread may want it for a callback. If it is destroyed before the operation is
// over, the arrays are kept until then.
class Operation {
 public:
  Operation(Work work, Kept kept) : work_(std::move(work)), kept_(std::move(kept)) {}
  Operation(Operation&&) noexcept = default;
  Operation& operator=(Operation&&) = delete;
  ~Operation();

  // Returns false if it still runs after that many seconds. Signal handlers run meanwhile, and Ctrl-C ends
  // the wait.
  bool wait(std::optional<double> timeout);
  bool done() const { return work_.done(); }
  nb::object error() const;
  void then(nb::callable callback);
  nb::object received() const;

 private:
  Work work_;
  Kept kept_;
};

// Releases the arrays of operations that are over by now, but whose handles were destroyed before.
void release_finished();

// Converts `seconds` for the library; a time too long for it means no limit. Throws for a negative number or
// none.
std::chrono::nanoseconds duration(double seconds);
// Converts an optional limit in the same manner. A limit that is left out becomes zero.
std::chrono::nanoseconds limit(std::optional<double> seconds);

void bind_work(nb::module_& module);

}  // namespace tutti::python
