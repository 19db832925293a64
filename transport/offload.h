#pragma once

#include <string_view>

#include <tutti/status.h>

#include "core/collective_args.h"

namespace tutti {

// Told once when an offloaded collective is over; from any thread.
struct OffloadCompletion {
  void (*done)(OffloadCompletion& completion, const Status& status) = nullptr;
};

// Carries out whole collectives by itself instead of a schedule of messages (NCCL, an MPI library).
class Offload {
 public:
  virtual ~Offload() = default;
  virtual std::string_view name() const = 0;
  // Judged only by what is equal on all ranks, so that all ranks answer alike.
  virtual bool supports(const CollectiveArgs& args) const = 0;
  // Starts it; `completion` is told later, also of failures. Operations are posted in the same order on all
  // ranks.
  virtual void post(const CollectiveArgs& args, OffloadCompletion& completion) = 0;
};

}  // namespace tutti
