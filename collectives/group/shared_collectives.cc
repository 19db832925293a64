#include "collectives/group/shared_collectives.h"

#include <utility>

#include "collectives/schedule/algorithm.h"

namespace tutti {

void SharedCollectives::open(std::unique_ptr<SharedExecutor> executor, std::uint64_t window_bytes) {
  executor_ = std::move(executor);
  window_bytes_ = window_bytes;
}

// Every member can write to the board, so the rank that the board names is checked before it is used.
void SharedCollectives::hear() {
  const Status why = executor_->board().heard();
  if (why.ok()) return;
  executor_->advance();  // signals that the failed rank gave before it failed still count
  failure_.note(members_.contains(why.peer()) ? why : Status(why.code(), why.message()));
}

Status SharedCollectives::first_cause(const Status& why) {
  if (!failure_.happened()) listen();
  return failure_.happened() ? failure_.status() : why;
}

void SharedCollectives::fail(const Status& why) {
  if (executor_ == nullptr) return;
  executor_->cancel();
  executor_->board().fail(why);
}

void SharedCollectives::bind(Operation& operation, const Problem& problem, ScheduleCache& cache,
                             const Registry& registry) const {
  const RunBinding& binding = operation.binding;
  operation.execution = &operation.shared;
  operation.shared.executor = executor_.get();
  SharedRun& run = operation.shared.run;
  run = SharedRun{};
  run.schedule = &operation.shared_schedule->schedule();
  run.binding = &binding;
  run.passes_caches = passes_caches(problem);
  run.agrees = problem.agrees;
  run.votes = operation.call.algorithm == 0 && has_registered_form(problem);
  if (!run.votes) {
    if (!run.agrees) run.flat = operation.shared_schedule->flat();
    return;
  }
  Problem at_root = problem;
  at_root.rank = problem.root;
  run.input_bytes = input_count(at_root) * problem.element_size;
  run.output_bytes = output_count(at_root) * problem.element_size;
  const Reach needed = reach(problem.kind, problem.root, members_.rank());
  if (needed.input && registry.find(binding.input, run.input_bytes).allocation == 0) return;
  if (needed.output && registry.find(binding.output, run.output_bytes).allocation == 0) return;
  Problem registered = problem;
  registered.registered = true;
  Result<std::shared_ptr<CachedSchedule>> schedule = cache.get(registered, 0);
  if (!schedule.ok()) return;
  operation.registered_schedule = std::move(schedule).take();
  run.registered = &operation.registered_schedule->schedule();
}

bool SharedCollectives::prepare_sleep() {
  if (executor_ == nullptr) return false;
  const bool more = executor_->prepare_sleep();
  return more || (!failure_.happened() && executor_->board().unheard());
}

}  // namespace tutti
