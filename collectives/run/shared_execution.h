#pragma once

#include <algorithm>
#include <vector>

#include "collectives/run/execution.h"
#include "collectives/run/shared_executor.h"

namespace tutti {

// A `SharedExecution` carries out a shared schedule: it submits a `SharedRun` to the communicator's executor.
class SharedExecution final : public Execution {
 public:
  void start(const RunBinding& binding) override {
    if (executor->submit(run)) binding.finished(binding.owner, Status());
  }
  // Before this call, the executor must have dropped its operations.
  void cancel(const Status& why) override { run.binding->finished(run.binding->owner, why); }
  std::vector<int> awaited() const override {
    std::vector<int> ranks = executor->awaited();
    for (int& rank : ranks) rank = run.binding->ranks[static_cast<std::size_t>(rank)];
    std::ranges::sort(ranks);
    return ranks;
  }
  // A rank that leaves writes nothing on the board, so the other ranks do not notice it there.
  bool notices_leaving() const override { return false; }

  SharedExecutor* executor = nullptr;
  SharedRun run;
};

}  // namespace tutti
