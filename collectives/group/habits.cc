#include "collectives/group/habits.h"

#include <utility>

#include "collectives/schedule/algorithm.h"

namespace tutti {

Habits::Habits(const Parts& parts, OperationOwner& owner) : parts_(parts), owner_(owner) {}

Habits::~Habits() { forget(); }

void Habits::forget() {
  for (Habit& habit : habits_) {
    drop(habit);
    habit.schedule.reset();
  }
}

void Habits::drop(Habit& habit) {
  if (habit.operation != nullptr) habit.operation->release();
  habit.operation = nullptr;
}

// Nothing is remembered if the problem refers to a caller's counts, or while another thread drives.
void Habits::form(const Operation& operation, const Problem& problem) {
  if (!problem.input_counts.empty() || !problem.output_counts.empty() || !parts_.gate.enter_in_passing())
    return;
  Habit& habit = of(problem.kind);
  drop(habit);
  habit.problem = problem;
  habit.schedule = operation.shared_schedule;
  parts_.gate.leave();
}

bool Habits::enter_for(const Habit& habit,
                       const CallOptions& options)
    TUTTI_NO_THREAD_SAFETY_ANALYSIS {  // this function itself acquires the baton
  if (parts_.shared.window_bytes() == 0 || !is_plain(options) || !parts_.gate.enter_in_passing())
    return false;
  if (habit.schedule != nullptr && !parts_.shared.executor()->busy()) return true;
  parts_.gate.leave();
  return false;
}

bool Habits::repeat(const Call& call, const CallOptions& options, Work& work) {
  Habit& habit = of(call.kind);
  if (!enter_for(habit, options)) return false;
  const bool same = habit.operation != nullptr && is_same(habit.call, call);
  if (same) carry_out(habit, options, work);
  parts_.gate.leave();
  return same;
}

bool Habits::attempt(const Call& call, const Problem& problem, const Fingerprint& print,
                     const CallOptions& options, Work& work) {
  Habit& habit = of(problem.kind);
  if (!enter_for(habit, options)) return false;
  const bool same = same_schedule(habit.problem, problem);
  if (same) {
    bind(habit, call, print);
    carry_out(habit, options, work);
  }
  parts_.gate.leave();
  return same;
}

void Habits::bind(Habit& habit, const Call& call, const Fingerprint& print) {
  if (habit.operation == nullptr)
    habit.operation = parts_.live.make_passing(owner_, Operation::Kind::collective);
  Operation& operation = *habit.operation;
  operation.call = print;
  operation.algorithm = habit.schedule->algorithm();
  operation.bind(call, parts_.context, parts_.mesh, parts_.members.world_ranks());
  habit.call = call;
  habit.call.op = &operation.op;  // the caller's `op` may be gone by the next call
  operation.shared.run = SharedRun{};
  operation.shared.run.schedule = &habit.schedule->schedule();
  operation.shared.run.flat = habit.schedule->flat();
  operation.shared.run.binding = &operation.binding;
  operation.shared.run.passes_caches = passes_caches(habit.problem);
}

void Habits::carry_out(Habit& habit, const CallOptions& options, Work& work) {
  Operation& operation = *habit.operation;
  const std::uint64_t number = parts_.journal.number_collective_at_once();
  operation.sequence = operation.binding.sequence = number;
  const History::Time began = parts_.journal.beginning(number);
  if (parts_.shared.executor()->submit(operation.shared.run)) {
    parts_.journal.collective_at_once(operation, began);
  } else {
    keep(habit, options, work);
  }
  parts_.mesh.on_issued(parts_.context, number);
}

// Returns the habit's operation as `work`, since the operation has not completed. The habit gets a new
// operation for the same call, so that the next equal call need not be checked.
void Habits::keep(Habit& habit, const CallOptions& options, Work& work) {
  Operation& operation = *std::exchange(habit.operation, nullptr);
  bind(habit, habit.call, operation.call);
  operation.shared_schedule = habit.schedule;
  operation.shared.executor = parts_.shared.executor();
  operation.execution = &operation.shared;
  operation.executing = true;
  work = parts_.live.keep(operation, options);
}

}  // namespace tutti
