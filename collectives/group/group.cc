#include "collectives/group/group.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include <tutti/log.h>

#include "collectives/record/recorder.h"
#include "collectives/schedule/algorithm.h"

namespace tutti {

namespace {

// A clock is read only at every so many polls: a spinning waiter polls every few hundred nanoseconds.
constexpr std::uint32_t polls_per_clock = 64;
}  // namespace

Group::Group(std::shared_ptr<World> world, std::uint32_t context, std::vector<int> ranks)
    : world_(std::move(world)),
      driver_(world_->engine->driver),
      mesh_(*world_->mesh),
      context_(context),
      part_of_(world_->part_of),
      members_(mesh_, world_->topology, std::move(ranks)),
      cache_(world_->selector),
      failure_(mesh_.rank(), members_.describe_this_rank(), *this),
      journal_(context, world_->engine->trace.get()) {
  const DriverGuard guard(driver_);
  driver_.add(*this);
  world_->desk.add(*this);
  mesh_.attach(context_, *this);
  world_->recorder->add(*this);
}

Group::~Group() {
  settle();
  const DriverGuard guard(driver_);
  if (dispute_ != nullptr) {
    dispute_->until = Deadline::after(std::chrono::nanoseconds(0));
    settle_dispute();
  }
  if (live_ != nullptr) {
    failure_.note(Status(Code::aborted, members_.describe_this_rank() +
                                            " destroyed the communicator with operations in flight"));
  } else if (std::uncaught_exceptions() > 0) {
    // The others may be waiting for what this rank will not do any more: they are to learn why, not only that
    // it left.
    failure_.note(Status(Code::aborted,
                         members_.describe_this_rank() + " left the communicator because of an exception"));
  }
  failure_.act();
  world_->recorder->remove(*this);
  mesh_.detach(context_);
  world_->desk.remove(*this);
  driver_.remove(*this);
  for (Habit& habit : habits_) drop(habit);
  if (ready_send_ != nullptr) ready_send_->release();
  shared_.reset();
  allocations_.clear();
}

// Until what other threads have issued has started.
void Group::settle() {
  while (posted_.load(std::memory_order_acquire) != 0 && !driver_.forked()) {
    if (!driver_.progress()) std::this_thread::yield();
  }
}

std::string Group::describe(const Fingerprint& call) const { return tutti::describe(call); }

Operation* Group::prepare(Operation::Kind kind, const Fingerprint& call, const CallOptions& options) {
  Operation* operation = Operation::create(world_->engine);
  operation->kind = kind;
  operation->group = this;
  operation->call = call;
  operation->algorithm = 0;
  operation->timeout = timeout(options);
  journal_.count_issued();
  return operation;
}

std::chrono::nanoseconds Group::timeout(const CallOptions& options) const {
  return options.timeout.count() > 0 ? options.timeout : world_->default_timeout;
}

Work Group::refuse(const Fingerprint& call, const Status& why) {
  Operation* operation = prepare(Operation::Kind::transfers, call, {});
  Work work = Operation::handle(*operation);
  operation->finish(explain(*operation, why));
  operation->release();
  return work;
}

Work Group::collective(const Call& made, const CollectiveArgs& args, const Problem& asked,
                       const CallOptions& options) {
  Fingerprint call = fingerprint(args);
  Problem problem = asked;
  problem.window_bytes = window_bytes_;
  // What is kept of a call for the next one knows nothing of what the call is part of.
  const Composite part_of = made.part_of != Composite::none ? made.part_of : part_of_;
  if (part_of != Composite::none) {
    call.algorithm = static_cast<std::uint8_t>(part_of);
  } else if (Work work; attempt(made, args, problem, call, options, work)) {
    return work;
  }
  // The number is taken first: also an operation that fails here has its place in the order.
  const std::uint64_t sequence = journal_.number_collective();
  Result<std::shared_ptr<CachedSchedule>> schedule = cache_.get(problem, args.algorithm);
  if (!schedule.ok()) return refuse(call, schedule.status());
  Operation* operation = prepare(Operation::Kind::collective, call, options);
  operation->sequence = sequence;
  operation->op = args.op;
  operation->algorithm = (*schedule)->algorithm();
  bind(*operation, args);
  if (!(*schedule)->schedule().shared) {
    operation->run = (*schedule)->lease();
    return launch(operation);
  }
  operation->shared_schedule = std::move(schedule).take();
  bind_shared(*operation, args, problem);
  if (!operation->shared.votes && !problem.agrees && args.algorithm == 0) form_habit(*operation, problem);
  return launch(operation);
}

void Group::bind(Operation& bound, const CollectiveArgs& args) {
  Operation* const operation = &bound;
  RunBinding& binding = operation->binding;
  binding = RunBinding{};
  binding.input = static_cast<const std::byte*>(args.input);
  binding.output = static_cast<std::byte*>(args.output);
  binding.reducer = Reducer(args.type, operation->op);
  binding.reducer.failure = &operation->user_failure;
  binding.factor = args.op.factor();
  binding.divisor = members_.world_ranks().size();
  binding.context = context_;
  binding.sequence = operation->sequence;
  binding.call = operation->call;
  binding.mesh = &mesh_;
  binding.ranks = members_.world_ranks();
  binding.owner = operation;
  binding.finished = [](void* owner, const Status& status) {
    auto& self = *static_cast<Operation*>(owner);
    self.group->collective_done(self, status);
  };
}

// A failure that was noted while its last messages came in counts: `act_on_failure` ends it.
void Group::collective_done(Operation& operation, const Status& status) {
  if (status.ok() && !failure_.happened()) {
    end(operation, status);
  } else {
    if (status.code() == Code::mismatch && !operation.run) dispute_on_board(&operation, status);
    const bool ours = operation.binding.reducer.failed();
    suspect_failure(
        ours ? Status(Code::aborted, members_.describe_this_rank() + ": " + status.message(), mesh_.rank())
             : status);
  }
}

// Starts it on this thread if nobody drives; a small message then leaves before this returns.
Work Group::launch(Operation* operation) {
  Work work = Operation::handle(*operation);
  // What other threads have issued before must start before.
  if (posted_.load(std::memory_order_acquire) == 0 && driver_.try_enter()) {
    start(*operation);
    failure_.act();
    driver_.leave();
  } else if (driver_.forked()) {
    operation->finish(explain(*operation, forked_child()));
    operation->release();
  } else {
    operation->task.operation = operation;
    operation->task.run = [](DriverTask& task) {
      Operation& posted = *static_cast<Operation::Task&>(task).operation;
      Group& group = *posted.group;
      group.start(posted);
      group.posted_.fetch_sub(1, std::memory_order_release);
    };
    operation->queued = journal_.now();
    posted_.fetch_add(1, std::memory_order_relaxed);
    driver_.post(operation->task);
  }
  return work;
}

void Group::enlist(Operation& operation) {
  operation.next = live_;
  operation.previous = nullptr;
  if (live_ != nullptr) live_->previous = &operation;
  live_ = &operation;
}

void Group::start(Operation& operation) {
  enlist(operation);
  if (operation.kind == Operation::Kind::transfers) operation.sequence = journal_.number_transfer();
  journal_.begin(operation);
  if (shared_ != nullptr) listen();
  if (failure_.happened()) {
    end(operation, status());
  } else if (operation.kind == Operation::Kind::collective) {
    start_collective(operation);
  } else {
    start_transfers(operation);
  }
}

void Group::start_collective(Operation& operation) {
  mesh_.on_issued(context_, operation.sequence);
  if (failure_.happened() || dispute_ != nullptr) return;
  if (operation.is_shared()) {
    if (shared_->submit(operation.shared)) collective_done(operation, Status());
  } else {
    operation.run->start(operation.binding);
  }
}

void Group::end(Operation& operation, const Status& status) {
  journal_.end(operation, status);
  if (operation.next != nullptr) operation.next->previous = operation.previous;
  (operation.previous != nullptr ? operation.previous->next : live_) = operation.next;
  operation.run.reset();
  operation.shared_schedule.reset();
  operation.registered_schedule.reset();
  operation.finish(explain(operation, status));
  operation.release();
}

std::string Group::name(const Operation& operation) const {
  return members_.describe_this_rank() + ": " + operation.name();
}

Status Group::explain(const Operation& operation, const Status& why) const {
  // The operation that timed out has said so itself.
  if (why.ok() || why.message().starts_with(name(operation))) return why;
  return why.with_context(members_.describe_this_rank() + ": " + operation.describe());
}

void Group::cancel(Operation& operation, const Status& why) {
  if (operation.kind == Operation::Kind::collective) {
    if (!operation.is_shared()) operation.run->cancel(why);
    end(operation, why);
    return;
  }
  if (operation.legs_open == 0) {  // over already, but for the cause
    end(operation, why);
    return;
  }
  // The last leg that is taken back ends the operation.
  operation.retain();
  operation.leg_failure = why;
  for (auto& node : operation.sends) {
    if (node.posted) mesh_.cancel(node, node.world_rank, why);
  }
  for (auto& node : operation.recvs) {
    if (node.posted) mesh_.cancel(node, why);
  }
  operation.release();
}

// The verdict of an open dispute is the cause, not what opened it.
void Group::suspect_failure(const Status& why) {
  if (why.code() == Code::mismatch && dispute_ != nullptr) return;
  failure_.suspect(why, world_->desk.listens());
}

void Group::spread_failure(const Status& why, bool known) {
  inquiry_.reset();  // its time would never be over
  dispute_.reset();
  for (ShareRequest* request : sharing_) mesh_.cancel_share(*request, why);
  mesh_.abort(context_, members_.world_ranks(), why);
  if (!known) world_->desk.tell_failure(context_, why);
  if (shared_ != nullptr) {
    shared_->cancel();
    shared_->board().fail(why);
  }
  world_->recorder->on_failure(*this, why);
}

void Group::end_operations(const Status& why) {
  while (live_ != nullptr) cancel(*live_, why);
}

void Group::abort(const Status& why) {
  failure_.note(why);
  if (driver_.try_enter()) {
    failure_.act();
    driver_.leave();
  } else {
    driver_.wake();
  }
}

bool Group::poll() {
  failure_.confirm_suspicion();
  if (failure_.happened()) {
    const bool work = live_ != nullptr || !failure_.is_spread();
    failure_.act();
    return work;
  }
  bool did = false;
  if (shared_ != nullptr) {
    listen();
    did = shared_->advance();
    if (const Status agreed = shared_->compare(); !agreed.ok()) dispute_on_board(nullptr, agreed);
    failure_.act();
  }
  if (inquiry_ != nullptr) conclude();
  if (!asked_.empty()) answer_asked();
  if (dispute_ != nullptr) {
    settle_dispute();
    failure_.act();
    return did;
  }
  if (live_ != nullptr && ++polls_ % polls_per_clock == 0) check_deadlines();
  return did;
}

// World ranks.
std::vector<int> Group::awaited_in_world(const Operation& operation) const {
  std::vector<int> ranks;
  if (operation.kind == Operation::Kind::collective) {
    ranks = awaited(operation);
    for (int& rank : ranks) rank = members_.world_rank(rank);
    return ranks;
  }
  for (const auto& node : operation.recvs) {
    if (node.posted && node.peer != any_source) ranks.push_back(node.peer);
  }
  for (const auto& node : operation.sends) {
    if (node.posted) ranks.push_back(node.world_rank);
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::vector<Group::Waiting> Group::waiting() const {
  std::vector<Waiting> found;
  for (const Operation* operation = live_; operation != nullptr; operation = operation->next) {
    const History::Time since = History::time_of(operation->issued.load(std::memory_order_relaxed));
    found.push_back({operation->kind, operation->sequence, since, awaited_in_world(*operation)});
  }
  return found;
}

void Group::on_abort(int peer, const Status& why) {
  if (members_.contains(peer)) fail(why);
}

void Group::fail(const Status& why) { failure_.note_known(why); }

void Group::on_peer_down(int peer, const Status& why) {
  // A clean goodbye matters only to operations that still need that peer, and those are failed by the mesh.
  if (!members_.contains(peer) || why.code() == Code::aborted) return;
  suspect_failure(first_cause(why));
}

}  // namespace tutti
