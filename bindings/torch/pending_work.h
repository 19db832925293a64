#pragma once

#include <memory>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tutti/c.h>

namespace tutti_torch {

struct FreeWork {
  void operator()(tutti_work* work) const { tutti_work_free(work); }
};
using WorkHandle = std::unique_ptr<tutti_work, FreeWork>;

// A `PendingWork` is an operation that `Completions` settles. Any thread may call its functions.
class PendingWork : public c10d::Work {
 public:
  using Work::Work;
  // Makes progress until the operation has succeeded or failed.
  virtual void drive() = 0;
  // Copies results, and completes this work and its future. Call this only after the operation has
  // ended. Only the first call has an effect.
  virtual void settle() = 0;
  virtual const std::vector<WorkHandle>& handles() const = 0;
};

}  // namespace tutti_torch
