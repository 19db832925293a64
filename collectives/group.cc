#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include <tutti/collectives/group.h>
#include <tutti/core/log.h>

namespace tutti {

namespace {

constexpr std::size_t initial_window = 256;
// A clock is read only at every so many polls: a spinning waiter polls every few hundred nanoseconds.
constexpr std::uint32_t polls_per_clock = 64;

Topology topology_among(const Topology& world, const std::vector<int>& ranks) {
  std::vector<int> hosts;
  for (const int rank : ranks) hosts.push_back(world.host_of(rank));
  return Topology(hosts);
}

}  // namespace

Group::Group(std::shared_ptr<World> world, std::uint32_t context, std::vector<int> ranks)
    : world_(std::move(world)),
      driver_(world_->engine->driver),
      mesh_(*world_->mesh),
      context_(context),
      ranks_(std::move(ranks)),
      position_(static_cast<std::size_t>(mesh_.size()), -1),
      topology_(topology_among(world_->topology, ranks_)),
      cache_(world_->selector),
      slots_(initial_window) {
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    position_[static_cast<std::size_t>(ranks_[i])] = static_cast<int>(i);
  rank_ = position_[static_cast<std::size_t>(mesh_.rank())];
  const DriverGuard guard(driver_);
  driver_.add(*this);
  mesh_.attach(context_, *this);
}

Group::~Group() {
  while (posted_.load(std::memory_order_acquire) != 0 && !driver_.forked()) {
    if (!driver_.progress()) std::this_thread::yield();
  }
  const DriverGuard guard(driver_);
  if (live_ != nullptr) {
    note_failure(
        Status(Code::aborted, describe(rank_) + " destroyed the communicator with operations in flight"));
  } else if (std::uncaught_exceptions() > 0) {
    // The others may be waiting for what this rank will not do any more: they are to learn why, not only that
    // it left.
    note_failure(Status(Code::aborted, describe(rank_) + " left the communicator because of an exception"));
  }
  act_on_failure();
  mesh_.detach(context_);
  driver_.remove(*this);
  for (Habit& habit : habits_) drop(habit);
  shared_.reset();
  allocations_.clear();
}

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
  sharing.members = ranks_;
  sharing.bytes = bytes;
  sharing.deadline = deadline;
  sharing.events = this;
  {
    const DriverGuard guard(driver_);
    mesh_.share(sharing);
  }
  // Transports keep to the deadline.
  if (!driver_.wait(sharing.over, Deadline::never())) return driver_.status();
  return std::move(sharing.outcome);
}

void Group::share_windows(std::uint64_t window_bytes, Deadline deadline) {
  if (size() == 1 || window_bytes == 0) return;
  Result<std::unique_ptr<SharedSegment>> segment =
      share(Board::segment_bytes(size(), window_bytes), deadline);
  if (!segment.ok()) {
    log::info(describe(rank_),
              ": this communicator's ranks do not share memory: ", segment.status().message());
    return;
  }
  auto board = std::make_unique<Board>(std::move(segment).take(), rank_, size(), window_bytes);
  const DriverGuard guard(driver_);
  shared_ = std::make_unique<SharedExecutor>(std::move(board), allocations_, world_->patient);
  window_bytes_ = window_bytes;
}

std::string Group::describe(int rank) const {
  return mesh_.peer(ranks_[static_cast<std::size_t>(rank)]).describe();
}

Status Group::status() const {
  if (!failed_.load(std::memory_order_acquire)) return Status();
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

Operation* Group::prepare(Operation::Kind kind, const Fingerprint& call, const CallOptions& options) {
  Operation* operation = Operation::create(world_->engine);
  operation->kind = kind;
  operation->group = this;
  operation->call = call;
  operation->deadline = deadline(options, operation->issued);
  issued_.fetch_add(1, std::memory_order_relaxed);
  return operation;
}

Deadline Group::deadline(const CallOptions& options, Deadline::Clock::time_point now) const {
  return Deadline::after(options.timeout.count() > 0 ? options.timeout : world_->default_timeout, now);
}

Work Group::refuse(const Fingerprint& call, const Status& why) {
  Operation* operation = prepare(Operation::Kind::transfers, call, {});
  Work work = Operation::handle(*operation);
  operation->finish(explain(*operation, why));
  operation->release();
  return work;
}

std::shared_ptr<GroupMemory> Group::allocate(const std::vector<std::uint64_t>& parts) {
  std::unique_ptr<SharedSegment> segment;
  if (window_bytes_ != 0) {
    auto shared = share(GroupMemory::segment_bytes(parts), Deadline::after(world_->default_timeout));
    if (shared.ok()) {
      segment = std::move(shared).take();
    } else {
      log::warn(describe(rank_), ": memory is not registered: ", shared.status().message());
    }
  }
  auto memory = std::make_shared<GroupMemory>(std::move(segment), rank_, parts);
  if (memory->shared()) {
    const DriverGuard guard(driver_);  // segments that nobody uses any more may go
    allocations_.add(memory);
  }
  return memory;
}

Work Group::collective(const Call& made, const CollectiveArgs& args, const Problem& asked,
                       const CallOptions& options) {
  const Fingerprint call = fingerprint(args);
  Problem problem = asked;
  problem.window_bytes = window_bytes_;
  if (Work work; attempt(made, args, problem, call, options, work)) return work;
  // The number is taken first: also an operation that fails here has its place in the order.
  const std::uint64_t sequence = next_sequence_.fetch_add(1, std::memory_order_relaxed);
  Result<std::shared_ptr<CachedSchedule>> schedule = cache_.get(problem, args.algorithm);
  if (!schedule.ok()) return refuse(call, schedule.status());
  Operation* operation = prepare(Operation::Kind::collective, call, options);
  operation->sequence = sequence;
  operation->op = args.op;
  bind(*operation, args);
  if (!(*schedule)->schedule().shared) {
    operation->run = (*schedule)->lease();
    return launch(operation);
  }
  operation->shared_schedule = std::move(schedule).take();
  bind_shared(*operation, args, problem);
  if (!operation->shared.votes) form_habit(*operation, problem);
  return launch(operation);
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

bool Group::enter_for(const Habit& habit, const CallOptions& options) {
  // What other threads have issued before must start before.
  if (window_bytes_ == 0 || !options.algorithm.empty() || posted_.load(std::memory_order_acquire) != 0 ||
      !driver_.try_enter()) {
    return false;
  }
  if (habit.schedule != nullptr && !shared_->busy()) {
    listen();
    if (!failed_.load(std::memory_order_acquire)) return true;
  }
  driver_.leave();
  return false;
}

bool Group::repeat(const Call& call, const CallOptions& options, Work& work) {
  Habit& habit = habits_[static_cast<std::size_t>(call.kind)];
  if (!enter_for(habit, options)) return false;
  const bool same = habit.operation != nullptr && same_call(habit.call, call);
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
    habit.call = call;
    Operation& operation = *habit.operation;
    operation.kind = Operation::Kind::collective;
    operation.group = this;
    operation.call = fingerprint;
    operation.op = args.op;
    bind(operation, args);
    operation.shared = SharedRun{};
    operation.shared.schedule = &habit.schedule->schedule();
    operation.shared.binding = &operation.binding;
    carry_out(habit, options, work);
  }
  driver_.leave();
  return same;
}

void Group::carry_out(Habit& habit, const CallOptions& options, Work& work) {
  Operation& operation = *habit.operation;
  operation.sequence = operation.binding.sequence = next_sequence_.fetch_add(1, std::memory_order_relaxed);
  attempting_ = true;
  attempt_over_ = false;
  shared_->submit(operation.shared);
  attempting_ = false;
  if (attempt_over_) {
    remember(operation, Slot::State::finished);
    mesh_.on_issued(context_, operation.sequence);
    attempted_.store(attempted_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    act_on_failure();
    return;
  }
  // It is an operation like any other now.
  habit.operation = nullptr;
  operation.shared_schedule = habit.schedule;
  operation.issued = Deadline::Clock::now();
  operation.deadline = deadline(options, operation.issued);
  issued_.fetch_add(1, std::memory_order_relaxed);
  work = Operation::handle(operation);
  enlist(operation);
  remember(operation, Slot::State::live);
  mesh_.on_issued(context_, operation.sequence);
  act_on_failure();
}

void Group::bind(Operation& bound, const CollectiveArgs& args) {
  Operation* const operation = &bound;
  RunBinding& binding = operation->binding;
  binding = RunBinding{};
  binding.input = static_cast<const std::byte*>(args.input);
  binding.output = static_cast<std::byte*>(args.output);
  binding.reducer = Reducer(args.type, operation->op);
  binding.factor = args.op.factor();
  binding.divisor = ranks_.size();
  binding.context = context_;
  binding.sequence = operation->sequence;
  binding.call = operation->call;
  binding.mesh = &mesh_;
  binding.ranks = ranks_;
  binding.owner = operation;
  binding.finished = [](void* owner, const Status& status) {
    auto& self = *static_cast<Operation*>(owner);
    if (status.ok() && self.group->attempting_) {
      self.group->attempt_over_ = true;
      return;
    }
    // A failure that was noted while its last messages came in counts: `act_on_failure` ends it.
    if (status.ok() && !self.group->failed_.load(std::memory_order_acquire)) {
      self.group->end(self, status);
    } else {
      self.group->note_failure(status);
    }
  };
}

// If the members vote on a registered form, has it ready: all of what others would reach into here may be
// registered.
void Group::bind_shared(Operation& operation, const CollectiveArgs& args, const Problem& problem) {
  SharedRun& run = operation.shared;
  run = SharedRun{};
  run.schedule = &operation.shared_schedule->schedule();
  run.binding = &operation.binding;
  run.votes = args.algorithm == 0 && has_registered_form(problem);
  if (!run.votes) return;
  Problem at_root = problem;
  at_root.rank = problem.root;
  run.input_bytes = input_count(at_root) * problem.element_size;
  run.output_bytes = output_count(at_root) * problem.element_size;
  const Reach needed = reach(problem.kind, problem.root, rank_);
  if (needed.input && allocations_.find(args.input, run.input_bytes).allocation == 0) return;
  if (needed.output && allocations_.find(args.output, run.output_bytes).allocation == 0) return;
  Problem registered = problem;
  registered.registered = true;
  Result<std::shared_ptr<CachedSchedule>> schedule = cache_.get(registered, 0);
  if (!schedule.ok()) return;
  operation.registered_schedule = std::move(schedule).take();
  run.registered = &operation.registered_schedule->schedule();
}

Work Group::transfers(CollectiveKind kind, std::span<const Transfer> legs, const CallOptions& options) {
  Fingerprint call;
  call.kind = kind;
  if (!legs.empty()) {
    call.type = legs.front().buffer.type;
    call.count = legs.front().buffer.count;
    call.root = legs.front().peer;
  }
  Operation* operation = prepare(Operation::Kind::transfers, call, options);
  std::size_t sends = 0;
  for (const Transfer& leg : legs) sends += leg.direction == Transfer::Direction::send ? 1 : 0;
  operation->sends.resize(sends);
  operation->recvs.resize(legs.size() - sends);
  std::size_t next_send = 0;
  std::size_t next_recv = 0;
  for (const Transfer& leg : legs) {
    if (leg.direction == Transfer::Direction::send) {
      auto& node = operation->sends[next_send++];
      node = {};
      node.header.tag = {context_ | user_context_bit, 0, leg.tag};
      node.header.call = call;
      node.header.bytes = leg.buffer.bytes();
      node.data = static_cast<const std::byte*>(leg.buffer.data);
      node.world_rank = ranks_[static_cast<std::size_t>(leg.peer)];
      node.operation = operation;
    } else {
      auto& node = operation->recvs[next_recv++];
      node = {};
      node.tag = {context_ | user_context_bit, 0, leg.tag};
      node.any_tag = leg.tag == any_tag;
      node.peer = leg.peer == any_rank ? any_source : ranks_[static_cast<std::size_t>(leg.peer)];
      node.call = call;
      node.bytes = leg.buffer.bytes();
      node.sink.out = static_cast<std::byte*>(leg.buffer.data);
      node.operation = operation;
    }
  }
  return launch(operation);
}

// Starts it on this thread if nobody drives; a small message then leaves before this returns.
Work Group::launch(Operation* operation) {
  Work work = Operation::handle(*operation);
  // What other threads have issued before must start before.
  if (posted_.load(std::memory_order_acquire) == 0 && driver_.try_enter()) {
    start(*operation);
    act_on_failure();
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
  if (shared_ != nullptr) listen();
  if (failed_.load(std::memory_order_acquire)) {
    end(operation, status());
  } else if (operation.kind == Operation::Kind::collective) {
    start_collective(operation);
  } else {
    start_transfers(operation);
  }
}

void Group::start_collective(Operation& operation) {
  remember(operation, Slot::State::live);
  mesh_.on_issued(context_, operation.sequence);
  if (failed_.load(std::memory_order_acquire)) return;
  if (operation.is_shared()) {
    shared_->submit(operation.shared);
  } else {
    operation.run->start(operation.binding);
  }
}

void Group::start_transfers(Operation& operation) {
  // One more than there are, so that it cannot end while legs are still being posted.
  operation.legs_open = operation.sends.size() + operation.recvs.size() + 1;
  for (auto& node : operation.recvs) {
    node.posted = true;
    node.done = [](RecvOp& op, const Status& status) {
      auto& self = static_cast<Operation::RecvLeg&>(op);
      self.posted = false;
      Operation& owner = *self.operation;
      if (status.ok()) {
        owner.received = {owner.group->position_[static_cast<std::size_t>(op.source)],
                          op.received.tag.sequence, op.received.bytes};
      }
      owner.group->leg_done(owner, status);
    };
    mesh_.recv(node);
  }
  for (auto& node : operation.sends) {
    node.posted = true;
    node.done = [](SendOp& op, const Status& status) {
      auto& self = static_cast<Operation::SendLeg&>(op);
      self.posted = false;
      self.operation->group->leg_done(*self.operation, status);
    };
    mesh_.send(node.world_rank, node);
  }
  leg_done(operation, Status());
}

void Group::leg_done(Operation& operation, const Status& status) {
  if (!status.ok() && operation.leg_failure.ok()) operation.leg_failure = status;
  if (--operation.legs_open == 0) end(operation, operation.leg_failure);
}

void Group::remember(const Operation& operation, Slot::State state) {
  Slot* entry = &slot(operation.sequence);
  while (entry->state == Slot::State::live && entry->sequence != operation.sequence) {
    // More operations in flight than the window is wide.
    std::vector<Slot> wider(slots_.size() * 2);
    for (const Slot& old : slots_) {
      if (old.state != Slot::State::free) wider[old.sequence % wider.size()] = old;
    }
    slots_ = std::move(wider);
    entry = &slot(operation.sequence);
  }
  *entry = {operation.sequence, state, operation.call};
}

ContextEvents::Known Group::operation(std::uint64_t sequence) const {
  const Slot& entry = slots_[sequence % slots_.size()];
  if (entry.state != Slot::State::free && entry.sequence == sequence) {
    return {&entry.call, entry.state == Slot::State::finished};
  }
  // Forgotten long ago, or yet to come.
  return {nullptr, entry.state != Slot::State::free && entry.sequence > sequence};
}

void Group::end(Operation& operation, const Status& status) {
  if (operation.kind == Operation::Kind::collective) remember(operation, Slot::State::finished);
  if (operation.next != nullptr) operation.next->previous = operation.previous;
  (operation.previous != nullptr ? operation.previous->next : live_) = operation.next;
  operation.run.reset();
  operation.shared_schedule.reset();
  operation.registered_schedule.reset();
  operation.finish(explain(operation, status));
  operation.release();
}

std::string Group::name(const Operation& operation) const {
  return describe(rank_) + ": " + operation.name();
}

Status Group::explain(const Operation& operation, const Status& why) const {
  // The operation that timed out has said so itself.
  if (why.ok() || why.message().starts_with(name(operation))) return why;
  return why.with_context(describe(rank_) + ": " + operation.describe());
}

void Group::cancel(Operation& operation, const Status& why) {
  if (operation.kind == Operation::Kind::collective) {
    if (!operation.is_shared()) operation.run->cancel(why);
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

void Group::note_failure(const Status& why) {
  const std::lock_guard lock(failure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return;
  failure_ = why;
  failed_.store(true, std::memory_order_release);
}

void Group::act_on_failure() {
  if (!failed_.load(std::memory_order_acquire) || acting_) return;
  acting_ = true;
  const Status why = status();
  if (!failure_handled_) {
    failure_handled_ = true;
    mesh_.abort(context_, ranks_, why);
    if (shared_ != nullptr) {
      shared_->cancel();
      shared_->board().fail(why);
    }
  }
  while (live_ != nullptr) cancel(*live_, why);
  acting_ = false;
}

void Group::abort(const Status& why) {
  note_failure(why);
  if (driver_.try_enter()) {
    act_on_failure();
    driver_.leave();
  } else {
    driver_.wake();
  }
}

bool Group::poll() {
  if (failed_.load(std::memory_order_acquire)) {
    const bool work = live_ != nullptr || !failure_handled_;
    act_on_failure();
    return work;
  }
  bool did = false;
  if (shared_ != nullptr) {
    listen();
    did = shared_->advance();
    act_on_failure();
  }
  if (live_ != nullptr && ++polls_ % polls_per_clock == 0) check_deadlines();
  return did;
}

bool Group::prepare_sleep() {
  if (shared_ == nullptr) return false;
  const bool more = shared_->prepare_sleep();
  if (!failed_.load(std::memory_order_acquire)) listen();
  return more || (failed_.load(std::memory_order_acquire) && !failure_handled_);
}

void Group::cancel_sleep() {
  if (shared_ != nullptr) shared_->cancel_sleep();
}

// Notes a failure that another rank has written on the board; what it says of a peer is not taken on trust.
void Group::listen() {
  const Status why = shared_->board().heard();
  if (why.ok()) return;
  const bool known = why.peer() >= 0 && why.peer() < mesh_.size() && member(why.peer());
  note_failure(known ? why : Status(why.code(), why.message()));
}

void Group::on_member_lost(int, const Status& why) { note_failure(why); }

void Group::check_deadlines() {
  for (const Operation* operation = live_; operation != nullptr; operation = operation->next) {
    if (!operation->deadline.expired()) continue;
    note_failure(timed_out(*operation));
    act_on_failure();
    return;
  }
}

Status Group::timed_out(const Operation& operation) const {
  std::string waiting;
  if (operation.kind == Operation::Kind::collective) {
    for (const int rank : operation.is_shared() ? shared_->awaited() : operation.run->awaited())
      waiting += (waiting.empty() ? "" : ", ") + describe(rank);
  } else {
    for (const auto& node : operation.recvs) {
      if (node.posted && node.peer != any_source)
        waiting += (waiting.empty() ? "" : ", ") + mesh_.peer(node.peer).describe();
    }
  }
  std::string text = describe(rank_) + ": " + operation.describe() + " was not over in time";
  if (!waiting.empty()) text += "; still waiting for " + waiting;
  return Status(Code::timeout, text);
}

Deadline Group::next_deadline() const {
  Deadline first = Deadline::never();
  for (const Operation* operation = live_; operation != nullptr; operation = operation->next) {
    first = earlier(first, operation->deadline);
  }
  return first;
}

void Group::on_mismatch(int, std::uint64_t, const Status& why) { note_failure(why); }

void Group::on_abort(int peer, const Status& why) {
  if (member(peer)) note_failure(why);
}

void Group::on_peer_down(int peer, const Status& why) {
  // A clean goodbye matters only to operations that still need that peer, and those are failed by the mesh.
  if (!member(peer) || why.code() == Code::aborted) return;
  note_failure(why);
}

}  // namespace tutti
