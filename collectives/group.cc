#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include <tutti/collectives/algorithm.h>
#include <tutti/collectives/group.h>
#include <tutti/collectives/recorder.h>
#include <tutti/core/log.h>

namespace tutti {

namespace {

constexpr std::size_t initial_window = 256;
constexpr std::size_t transfers_window = 64;
// Of operations that are over at once, only so many take the time; all do if there is a trace. A power of
// two.
constexpr std::uint64_t operations_per_clock = 16;
// A clock is read only at every so many polls: a spinning waiter polls every few hundred nanoseconds.
constexpr std::uint32_t polls_per_clock = 64;
// Between the end of a peer's connection and its being blamed.
constexpr std::chrono::milliseconds grace{50};

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
      part_of_(world_->part_of),
      ranks_(std::move(ranks)),
      position_(static_cast<std::size_t>(mesh_.size()), -1),
      topology_(topology_among(world_->topology, ranks_)),
      cache_(world_->selector),
      collectives_(initial_window, History::Full::grow),
      transfers_(transfers_window, History::Full::forget),
      trace_(world_->engine->trace.get()),
      clock_mask_(trace_ == nullptr ? operations_per_clock - 1 : 0) {
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    position_[static_cast<std::size_t>(ranks_[i])] = static_cast<int>(i);
  rank_ = position_[static_cast<std::size_t>(mesh_.rank())];
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
    note_failure(
        Status(Code::aborted, describe(rank_) + " destroyed the communicator with operations in flight"));
  } else if (std::uncaught_exceptions() > 0) {
    // The others may be waiting for what this rank will not do any more: they are to learn why, not only that
    // it left.
    note_failure(Status(Code::aborted, describe(rank_) + " left the communicator because of an exception"));
  }
  act_on_failure();
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

std::string Group::describe(int rank) const {
  return mesh_.peer(ranks_[static_cast<std::size_t>(rank)]).describe();
}

std::string Group::describe(const Fingerprint& call) const { return tutti::describe(call); }

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
  operation->algorithm = 0;
  operation->timeout = timeout(options);
  issued_.fetch_add(1, std::memory_order_relaxed);
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
  // A habit does not remember which composite call it belongs to, so parts of those go the long way.
  const Composite part_of = made.part_of != Composite::none ? made.part_of : part_of_;
  if (part_of != Composite::none) {
    call.algorithm = static_cast<std::uint8_t>(part_of);
  } else if (Work work; attempt(made, args, problem, call, options, work)) {
    return work;
  }
  // The number is taken first: also an operation that fails here has its place in the order.
  const std::uint64_t sequence = next_sequence_.fetch_add(1, std::memory_order_relaxed);
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
  binding.divisor = ranks_.size();
  binding.context = context_;
  binding.sequence = operation->sequence;
  binding.call = operation->call;
  binding.mesh = &mesh_;
  binding.ranks = ranks_;
  binding.owner = operation;
  binding.finished = [](void* owner, const Status& status) {
    auto& self = *static_cast<Operation*>(owner);
    self.group->collective_done(self, status);
  };
}

// A failure that was noted while its last messages came in counts: `act_on_failure` ends it.
void Group::collective_done(Operation& operation, const Status& status) {
  if (status.ok() && !failed_.load(std::memory_order_acquire)) {
    end(operation, status);
  } else {
    if (status.code() == Code::mismatch && !operation.run) dispute_on_board(&operation, status);
    const bool ours = operation.binding.reducer.failed();
    suspect_failure(ours ? Status(Code::aborted, describe(rank_) + ": " + status.message(), mesh_.rank())
                         : status);
  }
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
    operation->queued = now();
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
  if (operation.kind == Operation::Kind::transfers) operation.sequence = transfers_started_++;
  remember(operation);
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
  mesh_.on_issued(context_, operation.sequence);
  if (failed_.load(std::memory_order_acquire) || dispute_ != nullptr) return;
  if (operation.is_shared()) {
    if (shared_->submit(operation.shared)) collective_done(operation, Status());
  } else {
    operation.run->start(operation.binding);
  }
}

void Group::remember(Operation& operation) {
  std::uint64_t tag = 0;
  if (!operation.sends.empty()) tag = operation.sends.front().header.tag.sequence;
  if (!operation.recvs.empty()) tag = operation.recvs.front().tag.sequence;
  operation.started = timed(operation.sequence) ? now() : 0;
  history_of(operation).begin({.number = operation.sequence,
                               .call = operation.call,
                               .algorithm = operation.algorithm,
                               .tag = tag,
                               .issued = operation.queued,
                               .started = operation.started});
}

void Group::end_at_once(const Operation& operation, const History::Entry& entry) {
  const History::Time ended = now();
  history_of(operation).at_once(entry, ended);
  if (trace_ != nullptr) trace_end(operation, entry, ended);
}

// What lasted so long that its time was taken has an end, too.
void Group::remember_end(Operation& operation, const Status& status) {
  const auto stamped = operation.issued.load(std::memory_order_relaxed);
  const bool lasted = stamped != Deadline::Clock::time_point();
  const History::Time since = lasted ? History::time_of(stamped) : 0;
  const bool wanted = lasted || timed(operation.sequence);
  const auto state = status.ok() ? History::State::finished : History::State::failed;
  const History::Time ended = wanted ? std::max(since, now()) : 0;
  history_of(operation).end(operation.sequence, state, since, ended);
  if (trace_ == nullptr) return;
  const History::Entry entry{.number = operation.sequence,
                             .call = operation.call,
                             .algorithm = operation.algorithm,
                             .state = state,
                             .issued = operation.queued,
                             .started = operation.started};
  trace_end(operation, entry, ended);
}

void Group::trace_end(const Operation& operation, const History::Entry& entry, History::Time ended) const {
  trace_->add({.kind = Trace::Event::Kind::operation,
               .failed = entry.state == History::State::failed,
               .transfer = operation.kind == Operation::Kind::transfers,
               .context = context_,
               .number = entry.number,
               .call = entry.call,
               .algorithm = entry.algorithm,
               .issued = entry.issued,
               .began = entry.started,
               .ended = ended});
}

ContextEvents::Known Group::operation(std::uint64_t sequence) const {
  const History::Known known = collectives_.find(sequence);
  const bool live = known.state == History::State::live;
  return {known.call, known.call != nullptr ? !live : known.newer};
}

void Group::end(Operation& operation, const Status& status) {
  remember_end(operation, status);
  if (operation.kind == Operation::Kind::collective && !status.ok()) {
    completed_ = std::min(completed_, operation.sequence);
  }
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

void Group::note_failure(const Status& why) {
  const std::lock_guard lock(failure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return;
  const bool lost_ourselves = why.code() == Code::peer_lost && why.peer() == mesh_.rank();
  failure_ = lost_ourselves ? given_up(describe(rank_), mesh_.rank(), why.message()) : why;
  failed_.store(true, std::memory_order_release);
}

void Group::suspect_failure(const Status& why) {
  if (why.code() == Code::mismatch && dispute_ != nullptr) return;  // its verdict is the cause
  if (why.code() != Code::peer_lost || !world_->desk.listens()) {
    note_failure(why);
  } else if (!suspects_ && !failed_.load(std::memory_order_acquire)) {
    suspects_ = true;
    suspicion_ = why;
    judged_ = Deadline::after(grace);
  }
}

void Group::judge() {
  if (!judged_.expired()) return;
  suspects_ = false;
  note_failure(suspicion_);
}

void Group::act_on_failure() {
  if (!failed_.load(std::memory_order_acquire) || acting_) return;
  acting_ = true;
  suspects_ = false;
  const Status why = status();
  if (!failure_handled_) {
    failure_handled_ = true;
    inquiry_.reset();  // its time would never be over
    dispute_.reset();
    for (ShareRequest* request : sharing_) mesh_.cancel_share(*request, why);
    mesh_.abort(context_, ranks_, why);
    if (!all_know_) world_->desk.tell_failure(context_, why);
    if (shared_ != nullptr) {
      shared_->cancel();
      shared_->board().fail(why);
    }
    world_->recorder->on_failure(*this, why);
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
  if (suspects_) judge();
  if (failed_.load(std::memory_order_acquire)) {
    const bool work = live_ != nullptr || !failure_handled_;
    act_on_failure();
    return work;
  }
  bool did = false;
  if (shared_ != nullptr) {
    listen();
    did = shared_->advance();
    if (const Status agreed = shared_->compare(); !agreed.ok()) dispute_on_board(nullptr, agreed);
    act_on_failure();
  }
  if (inquiry_ != nullptr) conclude();
  if (!asked_.empty()) answer_asked();
  if (dispute_ != nullptr) {
    settle_dispute();
    act_on_failure();
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
    for (int& rank : ranks) rank = ranks_[static_cast<std::size_t>(rank)];
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
  if (member(peer)) fail(why);
}

void Group::fail(const Status& why) {
  all_know_ |= !failed_.load(std::memory_order_acquire);
  note_failure(why);
}

void Group::on_peer_down(int peer, const Status& why) {
  // A clean goodbye matters only to operations that still need that peer, and those are failed by the mesh.
  if (!member(peer) || why.code() == Code::aborted) return;
  suspect_failure(first_cause(why));
}

}  // namespace tutti
