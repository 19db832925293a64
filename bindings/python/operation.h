#pragma once

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include <tutti/work.h>

#include "bindings/python/array.h"

namespace tutti::python {

// What an operation in flight needs to stay alive.
struct Kept {
  std::vector<Array> arrays;
  nb::object op;
};

// A `Work` with the arrays that it works on. With the GIL, which is released wherever something may block: a
// thread that drives may want it, for a callback. Let go of before the operation is over, the arrays are kept
// until it is.
class Operation {
 public:
  Operation(Work work, Kept kept) : work_(std::move(work)), kept_(std::move(kept)) {}
  Operation(Operation&&) noexcept = default;
  Operation& operator=(Operation&&) = delete;
  ~Operation();

  // False if it still runs after so many seconds. Signal handlers run meanwhile, Ctrl-C ends the wait.
  bool wait(std::optional<double> timeout);
  bool done() const { return work_.done(); }
  nb::object error() const;
  void then(nb::callable callback);
  nb::object received() const;

 private:
  Work work_;
  Kept kept_;
};

// Lets go of the arrays of operations that are over by now, but whose handles went before.
void release_finished();

// `seconds` as the library has it: what it cannot count has no end. Throws for what is negative or no number.
std::chrono::nanoseconds duration(double seconds);
// The same for a limit that may be left out, of which zero speaks to the library.
std::chrono::nanoseconds limit(std::optional<double> seconds);

void bind_work(nb::module_& module);

}  // namespace tutti::python
