#pragma once

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include <tutti/work.h>

#include "bindings/python/array.h"

namespace tutti::python {

// A `Kept` holds the objects that must stay alive until an operation has ended.
struct Kept {
  std::vector<Array> arrays;
  nb::object op;
};

// An `Operation` is a `Work` with the arrays that it works on. Its functions require the GIL. They
// release the GIL wherever they may block, since the driving thread may need the GIL for a
// callback. The arrays are kept until the end of the operation, even if the `Operation` is
// destroyed earlier.
class Operation {
 public:
  Operation(Work work, Kept kept) : work_(std::move(work)), kept_(std::move(kept)) {}
  Operation(Operation&&) noexcept = default;
  Operation& operator=(Operation&&) = delete;
  ~Operation();

  // Returns false if the operation is still running after `timeout` seconds. Signal handlers run meanwhile,
  // and Ctrl-C ends the wait.
  bool wait(std::optional<double> timeout);
  void wait_on(std::uintptr_t stream);
  bool done() const { return work_.done(); }
  nb::object error() const;
  void then(nb::callable callback);
  nb::object received() const;

 private:
  Work work_;
  Kept kept_;
};

// Releases the arrays of operations that have ended after their handles were destroyed.
void release_finished();

// Converts `seconds` to the library's type. A time that the library cannot represent means no
// limit. Throws for a negative number and for NaN.
std::chrono::nanoseconds duration(double seconds);
// Does the same for a time limit. Returns zero if there is no value, and at least a nanosecond otherwise.
std::chrono::nanoseconds limit(std::optional<double> seconds);

void bind_work(nb::module_& module);

}  // namespace tutti::python
