#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <tutti/communicator.h>
#include <tutti/log.h>

#include "collectives/arguments.h"
#include "collectives/group/group.h"
#include "collectives/group/world.h"
#include "collectives/run/allocation.h"
#include "collectives/schedule/algorithm.h"
#include "core/descriptor_limit.h"

namespace tutti {

namespace {

Fingerprint outline(const Call& call) {
  CollectiveArgs args;
  args.kind = call.kind;
  args.type = call.out.type;
  args.op = call.op;
  args.root = call.root;
  args.count = call.out.count;
  args.algorithm = static_cast<std::uint8_t>(call.part_of);
  return fingerprint(args);
}

// Calls ask this first: in a forked child they might wait for a lock that a thread of the parent held.
bool is_forked(Group& group) { return group.world().engine->driver.forked(); }

Work issue_anew(Group& group, const Call& call, const CallOptions& options) {
  if (is_forked(group)) return group.refuse(outline(call), forked_child());
  Result<CheckedCall> checked = check(call, group.rank(), group.size());
  if (!checked.ok()) return group.refuse(outline(call), checked.status());
  checked->problem.topology = &group.topology();
  if (!options.algorithm.empty()) {
    const Algorithm* algorithm = find_algorithm(call.kind, options.algorithm);
    if (algorithm == nullptr) {
      const std::string kind(to_string(call.kind));
      return group.refuse(
          outline(call),
          Status(Code::invalid_argument, "no algorithm \"" + std::string(options.algorithm) + "\" for " +
                                             kind + "; it has: " + algorithm_names(call.kind)));
    }
    checked->args.algorithm = algorithm->id;
  }
  return group.collective(call, checked->args, checked->problem, options);
}

Work issue(Group& group, const Call& call, const CallOptions& options) {
  Work work;
  if (!group.repeat(call, options, work)) work = issue_anew(group, call, options);
  return work;
}

// The last handle may go inside a `then` callback, on the thread that drives. Tearing down needs the baton
// and waits for goodbyes, so there it is done by a thread of its own, once that one has left.
//
// In a forked child nothing is torn down: threads that do not exist there may have been changing it, and it
// is the parent that takes leave.
void retire(Group* group) {
  const Driver& driver = group->world().engine->driver;
  if (driver.forked()) {
    static auto* const left_alone = new std::vector<Group*>;  // a leak checker finds them here
    left_alone->push_back(group);
  } else if (driver.driven_by_this_thread()) {
    std::thread([group] { delete group; }).detach();
  } else {
    delete group;
  }
}

// `shares`: its ranks share memory if they can, the same on all of them.
std::shared_ptr<Group> make_group(const std::shared_ptr<World>& world, std::uint32_t context,
                                  std::vector<int> ranks, bool shares = true) {
  std::shared_ptr<Group> group(new Group(world, context, std::move(ranks)), retire);
  if (shares) group->share_windows(world->window_bytes, Deadline::after(world->sharing_limit));
  return group;
}

}  // namespace

Communicator create_communicator(const std::shared_ptr<World>& world) {
  std::vector<int> ranks(static_cast<std::size_t>(world->mesh->size()));
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
  // Equal on all ranks, being the first.
  const std::uint32_t context = world->contexts.propose();
  world->contexts.take(context);
  return Communicator(make_group(world, context, std::move(ranks)));
}

const CostModel& agreed_costs(const Communicator& communicator) {
  return communicator.group_->world().selector.model();
}

Communicator::Communicator(std::shared_ptr<Group> group) : group_(std::move(group)) {}
Communicator::~Communicator() = default;

Group& Communicator::group() const {
  if (group_ != nullptr) return *group_;
  throw Error(Status(Code::invalid_argument,
                     "this Communicator is empty: nothing was assigned to it, or it was moved from"));
}

int Communicator::rank() const { return group().rank(); }
int Communicator::size() const { return group().size(); }
Status Communicator::status() const { return group().status(); }
std::string Communicator::describe(int rank) const { return group().describe(rank); }
int Communicator::descriptor() const { return group().world().engine->driver.descriptor(); }
bool Communicator::progress() { return group().world().engine->driver.progress(); }

Work Communicator::all_reduce(const Buffer& in_out, const ReduceOp& op, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::all_reduce, .out = in_out, .op = op, .one_buffer = true},
               options);
}

Work Communicator::all_reduce(const ConstBuffer& in, const Buffer& out, const ReduceOp& op,
                              const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::all_reduce, .in = in, .out = out, .op = op}, options);
}

Work Communicator::reduce(const Buffer& in_out, const ReduceOp& op, int root, const CallOptions& options) {
  return issue(group(),
               {.kind = CollectiveKind::reduce, .out = in_out, .op = op, .root = root, .one_buffer = true},
               options);
}

Work Communicator::reduce(const ConstBuffer& in, const Buffer& out, const ReduceOp& op, int root,
                          const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::reduce, .in = in, .out = out, .op = op, .root = root},
               options);
}

Work Communicator::broadcast(const Buffer& in_out, int root, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::broadcast, .out = in_out, .root = root, .one_buffer = true},
               options);
}

Work Communicator::all_gather(const ConstBuffer& in, const Buffer& out, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::all_gather, .in = in, .out = out}, options);
}

Work Communicator::all_gather(const Buffer& in_out, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::all_gather, .out = in_out, .one_buffer = true}, options);
}

Work Communicator::all_gather_v(const ConstBuffer& in, const Buffer& out,
                                std::span<const std::uint64_t> counts, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::all_gather_v, .in = in, .out = out, .out_counts = counts},
               options);
}

Work Communicator::reduce_scatter(const ConstBuffer& in, const Buffer& out, const ReduceOp& op,
                                  const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::reduce_scatter, .in = in, .out = out, .op = op}, options);
}

Work Communicator::reduce_scatter(const Buffer& in_out, const ReduceOp& op, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::reduce_scatter, .out = in_out, .op = op, .one_buffer = true},
               options);
}

Work Communicator::reduce_scatter_v(const ConstBuffer& in, const Buffer& out,
                                    std::span<const std::uint64_t> counts, const ReduceOp& op,
                                    const CallOptions& options) {
  return issue(
      group(),
      {.kind = CollectiveKind::reduce_scatter_v, .in = in, .out = out, .op = op, .in_counts = counts},
      options);
}

Work Communicator::all_to_all(const ConstBuffer& in, const Buffer& out, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::all_to_all, .in = in, .out = out}, options);
}

Work Communicator::all_to_all(const Buffer& in_out, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::all_to_all, .out = in_out, .one_buffer = true}, options);
}

Work Communicator::all_to_all_v(const ConstBuffer& in, std::span<const std::uint64_t> in_counts,
                                const Buffer& out, std::span<const std::uint64_t> out_counts,
                                const CallOptions& options) {
  return issue(group(),
               {.kind = CollectiveKind::all_to_all_v,
                .in = in,
                .out = out,
                .in_counts = in_counts,
                .out_counts = out_counts},
               options);
}

Work Communicator::gather(const ConstBuffer& in, const Buffer& out, int root, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::gather, .in = in, .out = out, .root = root}, options);
}

Work Communicator::gather_v(const ConstBuffer& in, const Buffer& out, std::span<const std::uint64_t> counts,
                            int root, const CallOptions& options) {
  return issue(group(),
               {.kind = CollectiveKind::gather_v, .in = in, .out = out, .root = root, .out_counts = counts},
               options);
}

Work Communicator::scatter(const ConstBuffer& in, const Buffer& out, int root, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::scatter, .in = in, .out = out, .root = root}, options);
}

Work Communicator::scatter_v(const ConstBuffer& in, std::span<const std::uint64_t> counts, const Buffer& out,
                             int root, const CallOptions& options) {
  return issue(group(),
               {.kind = CollectiveKind::scatter_v, .in = in, .out = out, .root = root, .in_counts = counts},
               options);
}

Work Communicator::scan(const Buffer& in_out, const ReduceOp& op, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::scan, .out = in_out, .op = op, .one_buffer = true}, options);
}

Work Communicator::scan(const ConstBuffer& in, const Buffer& out, const ReduceOp& op,
                        const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::scan, .in = in, .out = out, .op = op}, options);
}

Work Communicator::exscan(const Buffer& in_out, const ReduceOp& op, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::exscan, .out = in_out, .op = op, .one_buffer = true},
               options);
}

Work Communicator::exscan(const ConstBuffer& in, const Buffer& out, const ReduceOp& op,
                          const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::exscan, .in = in, .out = out, .op = op}, options);
}

Work Communicator::barrier(const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::barrier}, options);
}

Work Communicator::send(const ConstBuffer& buffer, int peer, std::uint64_t tag, const CallOptions& options) {
  Transfer transfer{Transfer::Direction::send, {}, peer, tag};
  transfer.buffer = Buffer(const_cast<void*>(buffer.data), buffer.count, buffer.type);
  return batch({&transfer, 1}, options);
}

Work Communicator::recv(const Buffer& buffer, int peer, std::uint64_t tag, const CallOptions& options) {
  const Transfer transfer{Transfer::Direction::recv, buffer, peer, tag};
  return batch({&transfer, 1}, options);
}

Work Communicator::batch(std::span<const Transfer> transfers, const CallOptions& options) {
  const bool sends = !transfers.empty() && transfers.front().direction == Transfer::Direction::send;
  const CollectiveKind kind = sends ? CollectiveKind::send : CollectiveKind::recv;
  for (const Transfer& transfer : transfers) {
    const Status status = is_forked(group()) ? forked_child() : check(transfer, size());
    if (status.ok()) continue;
    Fingerprint call;
    call.kind = kind;
    call.type = transfer.buffer.type;
    call.count = transfer.buffer.count;
    return group().refuse(call, status);
  }
  return group().transfers(kind, transfers, options);
}

namespace {

// What each rank brings to a split.
struct SplitVote {
  std::int64_t color = 0;
  std::int64_t key = 0;
  std::int64_t descriptors = 0;  // that it has to spare
};
constexpr std::size_t vote_words = sizeof(SplitVote) / sizeof(std::int64_t);

std::vector<int> members_of(const std::vector<SplitVote>& votes, std::int64_t color) {
  std::vector<int> members;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (votes[i].color == color) members.push_back(static_cast<int>(i));
  }
  std::ranges::stable_sort(members, {}, [&](int rank) { return votes[static_cast<std::size_t>(rank)].key; });
  return members;
}

// Returns the first of the members that has too few descriptors for a shared segment, or -1. The leader needs
// a connection with each member, and every member holds the bells of all while the segment is handed round.
// All members have the same votes, so they decide alike and none waits for one that cannot come.
int first_in_want(const std::vector<SplitVote>& votes, const std::vector<int>& members) {
  constexpr std::size_t passing = 8;
  for (const int member : members) {
    const std::size_t connections = member == members.front() ? members.size() : 1;
    const auto needed = static_cast<std::int64_t>(members.size() + connections + passing);
    if (votes[static_cast<std::size_t>(member)].descriptors < needed) return member;
  }
  return -1;
}

void say_once_why_not_shared(const std::string& in_want) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  log::warn("file descriptors are short at ", in_want,
            " (RLIMIT_NOFILE, ulimit -n): communicators that are made now exchange messages where they would "
            "have shared memory");
}

}  // namespace

std::optional<Communicator> Communicator::split(int color, int key) {
  World& world = group().world();
  const SplitVote mine{color, key, static_cast<std::int64_t>(spare_descriptors())};
  std::vector<SplitVote> votes(static_cast<std::size_t>(size()));
  issue_anew(group(),
             {.kind = CollectiveKind::all_gather,
              .part_of = Composite::split,
              .in = ConstBuffer(&mine, vote_words, DataType::int64),
              .out = Buffer(votes.data(), votes.size() * vote_words, DataType::int64)},
             {})
      .wait();
  const std::vector<int> members = members_of(votes, color);
  std::vector<int> ranks;
  for (const int member : members) ranks.push_back(group().ranks()[static_cast<std::size_t>(member)]);
  const auto agree = [this](const Buffer& number, const ReduceOp& op) {
    return issue_anew(group(),
                      {.kind = CollectiveKind::all_reduce,
                       .part_of = Composite::split,
                       .out = number,
                       .op = op,
                       .one_buffer = true},
                      {});
  };
  // A number is free if it is free everywhere: two splits of other communicators may be under way on some
  // ranks, so what is proposed may be gone when all have heard of it.
  std::int64_t context = 0;
  for (bool agreed = false; !agreed;) {
    context = world.contexts.propose();
    agree(Buffer(&context, 1, DataType::int64), ReduceOp::max).wait();
    const auto number = static_cast<std::uint32_t>(context);
    const bool taken = world.contexts.take(number);
    std::int32_t free = taken ? 1 : 0;
    Work agreement = agree(Buffer(&free, 1, DataType::int32), ReduceOp::min);
    try {
      agreement.wait();
    } catch (const Error&) {
      // Others may have the answer, and wait for this rank in the new communicator.
      const DriverGuard guard(world.engine->driver);
      if (taken) world.desk.renounce(number, ranks, group().status());
      throw;
    }
    agreed = free == 1;
  }
  if (color == no_color) return std::nullopt;
  const int in_want = world.window_bytes == 0 || members.size() == 1 ? -1 : first_in_want(votes, members);
  if (in_want >= 0 && world.mesh->can_share(ranks)) say_once_why_not_shared(describe(in_want));
  return Communicator(
      make_group(group().shared_world(), static_cast<std::uint32_t>(context), std::move(ranks), in_want < 0));
}

Shrunk Communicator::shrink(int min_size) {
  const ShrinkNote decision = group().agree_to_shrink(min_size);
  std::vector<int> ranks;
  for (std::size_t i = 0; i < decision.members.size(); ++i) {
    if (decision.members[i]) ranks.push_back(group().ranks()[i]);
  }
  return {Communicator(make_group(group().shared_world(), decision.number, std::move(ranks))),
          decision.completed};
}

Allocation Communicator::allocate(std::size_t bytes) {
  std::vector<AllocationVote> votes(static_cast<std::size_t>(size()));
  const AllocationVote mine{bytes, memory_limits()};
  constexpr std::size_t words = sizeof mine / sizeof(std::uint64_t);
  issue_anew(group(),
             {.kind = CollectiveKind::all_gather,
              .part_of = Composite::allocate,
              .in = ConstBuffer(&mine, words, DataType::uint64),
              .out = Buffer(votes.data(), votes.size() * words, DataType::uint64)},
             {})
      .wait();
  if (const auto shortage = find_shortage(votes, group().topology())) {
    throw Error(Status(Code::resource_exhausted,
                       describe(rank()) + ": allocate: " + std::to_string(shortage->wanted) +
                           " bytes in all on the host of " + describe(shortage->rank) + ", where " +
                           std::to_string(shortage->limit) + " are all that there can be"));
  }
  std::vector<std::uint64_t> parts;
  for (const AllocationVote& vote : votes) parts.push_back(vote.bytes);
  return Allocation(group_, group().allocate(parts));
}

Allocation::Allocation(std::shared_ptr<Group> group, std::shared_ptr<GroupMemory> memory)
    : group_(std::move(group)), memory_(std::move(memory)) {}

// The group has another reference until all ranks have released the memory: so that is dropped by whoever
// drives, as segments must be, and not here.
void Allocation::let_go() {
  GroupMemory* const memory = memory_.get();
  const bool shared = registered();
  memory_.reset();
  if (shared && memory->release()) group_->tell_memory_unused();
}

Allocation& Allocation::operator=(Allocation&& other) noexcept {
  if (this == &other) return *this;
  let_go();
  memory_ = std::move(other.memory_);
  group_ = std::move(other.group_);
  return *this;
}

Allocation::~Allocation() { let_go(); }

void* Allocation::data() const { return memory_ == nullptr ? nullptr : memory_->data(); }
std::size_t Allocation::bytes() const { return memory_ == nullptr ? 0 : memory_->bytes(); }
bool Allocation::registered() const { return memory_ != nullptr && memory_->shared(); }

void Communicator::abort(const std::string& reason) {
  if (is_forked(group())) return;
  group().abort(Status(Code::aborted, "aborted by " + describe(rank()) + ": " + reason,
                       group().ranks()[static_cast<std::size_t>(rank())]));
}

Communicator::Statistics Communicator::statistics() const {
  World& world = group().world();
  std::optional<DriverGuard> guard;  // inside a `then` callback this thread drives already
  if (!world.engine->driver.driven_by_this_thread()) guard.emplace(world.engine->driver);
  const ChannelCounters counters = world.mesh->counters();
  return {group().operations_issued(), group().registered_operations(),
          counters.messages_sent,      counters.messages_received,
          counters.frames_sent,        counters.bytes_sent,
          counters.bytes_received,     world.mesh->open_channels()};
}

}  // namespace tutti
