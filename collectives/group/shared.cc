#include <utility>

#include <tutti/log.h>

#include "collectives/group/control_notes.h"
#include "collectives/group/group.h"

// What a group does differently where its members share memory.
namespace tutti {

namespace {

// One attempt to share, and somebody who waits for its outcome.
struct Sharing : ShareRequest {
  explicit Sharing(Driver& shared_driver) : driver(shared_driver) {
    done = [](ShareRequest& request, Result<std::unique_ptr<SharedSegment>> segment) {
      auto& self = static_cast<Sharing&>(request);
      self.outcome = std::move(segment);
      self.over.store(1);
      self.driver.notify(self.over);
    };
  }
  Driver& driver;
  std::atomic<std::uint32_t> over{0};
  Result<std::unique_ptr<SharedSegment>> outcome = Status(Code::internal, "not shared yet");
};

}  // namespace

Result<std::unique_ptr<SharedSegment>> Group::share(std::uint64_t bytes, Deadline deadline) {
  Sharing sharing(driver_);
  sharing.key = std::uint64_t{context_} << 32 | shares_++;
  sharing.members = members_.world_ranks();
  sharing.bytes = bytes;
  sharing.deadline = deadline;
  sharing.events = this;
  {
    const DriverGuard guard(driver_);
    if (const Status failed = status(); !failed.ok()) return failed;
    sharing_.push_back(&sharing);
    mesh_.share(sharing);
  }
  // Transports keep to the deadline, and a failure ends it at once.
  const bool over = driver_.wait(sharing.over, Deadline::never());
  const DriverGuard guard(driver_);
  std::erase(sharing_, &sharing);
  if (!over) return driver_.status();
  return std::move(sharing.outcome);
}

void Group::share_windows(std::uint64_t wanted_bytes, Deadline deadline) {
  if (size() == 1 || wanted_bytes == 0) return;
  // Every rank's begins where any element may lie.
  const std::uint64_t window_bytes = Board::whole_lines(wanted_bytes);
  Result<std::unique_ptr<SharedSegment>> segment =
      share(Board::segment_bytes(size(), window_bytes), deadline);
  if (!segment.ok()) {
    log::info(members_.describe_this_rank(),
              ": this communicator's ranks do not share memory: ", segment.status().message());
    return;
  }
  auto board = std::make_unique<Board>(std::move(segment).take(), members_.rank(), size(), window_bytes);
  const DriverGuard guard(driver_);
  shared_ = std::make_unique<SharedExecutor>(std::move(board), mesh_, members_.world_ranks(), allocations_,
                                             world_->patient);
  window_bytes_ = window_bytes;
}

std::shared_ptr<GroupMemory> Group::allocate(const std::vector<std::uint64_t>& parts) {
  std::unique_ptr<SharedSegment> segment;
  if (window_bytes_ != 0) {
    auto shared = share(GroupMemory::segment_bytes(parts), Deadline::after(world_->default_timeout));
    if (shared.ok()) {
      segment = std::move(shared).take();
    } else {
      const Status why = status().ok() ? shared.status() : status();
      // The communicator has failed, or did at a member that has said so here first.
      if (why.code() == Code::aborted || why.code() == Code::peer_lost || !status().ok()) throw Error(why);
      log::warn(members_.describe_this_rank(), ": memory is not registered: ", why.message());
    }
  }
  auto memory = std::make_shared<GroupMemory>(std::move(segment), members_.rank(), parts);
  if (memory->shared()) {
    const DriverGuard guard(driver_);  // segments that nobody uses any more may go
    allocations_.add(memory);
  }
  return memory;
}

void Group::tell_memory_unused() {
  const std::string body = NoteWriter().put(context_).take();
  for (const int rank : members_.world_ranks()) world_->desk.send(rank, topic_unused, body);
}

// Only problems that refer to nobody's counts are kept. Where somebody else drives just now: not this time.
void Group::form_habit(const Operation& operation, const Problem& problem) {
  if (!problem.input_counts.empty() || !problem.output_counts.empty() || !driver_.try_enter()) return;
  Habit& habit = habits_[static_cast<std::size_t>(problem.kind)];
  drop(habit);
  habit.problem = problem;
  habit.schedule = operation.shared_schedule;
  driver_.leave();
}

void Group::drop(Habit& habit) {
  if (habit.operation != nullptr) habit.operation->release();
  habit.operation = nullptr;
}

bool Group::enter_for(const Habit& habit,
                      const CallOptions& options)
    TUTTI_NO_THREAD_SAFETY_ANALYSIS {  // this *is* the acquisition
  // What other threads have issued before must start before.
  if (window_bytes_ == 0 || !options.algorithm.empty() || posted_.load(std::memory_order_acquire) != 0 ||
      !driver_.try_enter()) {
    return false;
  }
  if (habit.schedule != nullptr && !shared_->busy()) {
    listen();
    if (!failure_.happened()) return true;
  }
  driver_.leave();
  return false;
}

bool Group::repeat(const Call& call, const CallOptions& options, Work& work) {
  Habit& habit = habits_[static_cast<std::size_t>(call.kind)];
  if (!enter_for(habit, options)) return false;
  const bool same = habit.operation != nullptr && habit.call.knows(call);
  if (same) carry_out(habit, options, work);
  driver_.leave();
  return same;
}

bool Group::attempt(const Call& call, const CollectiveArgs& args, const Problem& problem,
                    const Fingerprint& fingerprint, const CallOptions& options, Work& work) {
  Habit& habit = habits_[static_cast<std::size_t>(problem.kind)];
  if (!enter_for(habit, options)) return false;
  const bool same = same_schedule(habit.problem, problem);
  if (same) {
    if (habit.operation == nullptr) habit.operation = Operation::create(world_->engine);
    habit.call = CallMemory(call);
    Operation& operation = *habit.operation;
    operation.kind = Operation::Kind::collective;
    operation.group = this;
    operation.call = fingerprint;
    operation.op = args.op;
    operation.algorithm = habit.schedule->algorithm();
    bind(operation, args);
    operation.shared = SharedRun{};
    operation.shared.schedule = &habit.schedule->schedule();
    operation.shared.flat = habit.schedule->flat();
    operation.shared.binding = &operation.binding;
    operation.shared.passes_caches = passes_caches(problem);
    carry_out(habit, options, work);
  }
  driver_.leave();
  return same;
}

void Group::carry_out(Habit& habit, const CallOptions& options, Work& work) {
  Operation& operation = *habit.operation;
  const std::uint64_t sequence = journal_.number_collective_at_once();
  operation.sequence = operation.binding.sequence = sequence;
  const History::Time began = journal_.beginning(sequence);
  if (shared_->submit(operation.shared)) {
    journal_.collective_at_once(operation, began);
    mesh_.on_issued(context_, operation.sequence);
    failure_.act();
    return;
  }
  keep_on(habit, options, work);
}

// It is an operation like any other now.
void Group::keep_on(Habit& habit, const CallOptions& options, Work& work) {
  Operation& operation = *std::exchange(habit.operation, nullptr);
  operation.shared_schedule = habit.schedule;
  operation.issued.store({}, std::memory_order_relaxed);
  operation.timeout = timeout(options);
  journal_.count_issued();
  work = Operation::handle(operation);
  enlist(operation);
  journal_.begin(operation);
  mesh_.on_issued(context_, operation.sequence);
  failure_.act();
}

// If the members vote on a registered form, has it ready: all of what others would reach into here may be
// registered.
void Group::bind_shared(Operation& operation, const CollectiveArgs& args, const Problem& problem) {
  SharedRun& run = operation.shared;
  run = SharedRun{};
  run.schedule = &operation.shared_schedule->schedule();
  run.binding = &operation.binding;
  run.passes_caches = passes_caches(problem);
  run.agrees = problem.agrees;
  run.votes = args.algorithm == 0 && has_registered_form(problem);
  if (!run.votes) {
    if (!run.agrees) run.flat = operation.shared_schedule->flat();
    return;
  }
  Problem at_root = problem;
  at_root.rank = problem.root;
  run.input_bytes = input_count(at_root) * problem.element_size;
  run.output_bytes = output_count(at_root) * problem.element_size;
  const Reach needed = reach(problem.kind, problem.root, members_.rank());
  if (needed.input && allocations_.find(args.input, run.input_bytes).allocation == 0) return;
  if (needed.output && allocations_.find(args.output, run.output_bytes).allocation == 0) return;
  Problem registered = problem;
  registered.registered = true;
  Result<std::shared_ptr<CachedSchedule>> schedule = cache_.get(registered, 0);
  if (!schedule.ok()) return;
  operation.registered_schedule = std::move(schedule).take();
  run.registered = &operation.registered_schedule->schedule();
}

bool Group::prepare_sleep() {
  if (shared_ == nullptr) return false;
  const bool more = shared_->prepare_sleep();
  if (failure_.happened()) return more || !failure_.is_spread();
  return more || shared_->board().unheard();
}

void Group::cancel_sleep() {
  if (shared_ != nullptr) shared_->cancel_sleep();
}

// Notes a failure that another rank has written on the board; what it says of a peer is not taken on trust.
void Group::hear() {
  const Status why = shared_->board().heard();
  if (why.ok()) return;
  shared_->advance();  // what that rank had signalled before it failed counts
  const bool known = why.peer() >= 0 && why.peer() < mesh_.size() && members_.contains(why.peer());
  failure_.note(known ? why : Status(why.code(), why.message()));
}

// A rank that fails writes the cause on the board before it leaves.
Status Group::first_cause(const Status& why) {
  if (shared_ != nullptr && !failure_.happened()) listen();
  return failure_.happened() ? status() : why;
}

void Group::on_member_lost(int, const Status& why) { suspect_failure(first_cause(why)); }

}  // namespace tutti
