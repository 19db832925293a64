#include <cstddef>
#include <optional>
#include <utility>

#include <tutti/communicator.h>

#include "collectives/arguments.h"
#include "collectives/group/group.h"
#include "collectives/group/world.h"

namespace tutti {

namespace {

Work issue(Group& group, const Call& call, const CallOptions& options) {
  Work work;
  if (!group.repeat(call, options, work)) work = group.collective(call, options);
  return work;
}

// Return a copy of a buffer, made member by member. The caller has just written the members, one by one. A
// copy of two members at once would have to wait until both writes have reached the cache.
Buffer copy(const Buffer& from) { return {from.data, from.count, from.type, from.memory}; }
ConstBuffer copy(const ConstBuffer& from) { return {from.data, from.count, from.type, from.memory}; }

// Returns this rank's block of a buffer that holds one block of every rank.
Buffer own_block(const Buffer& all, const Group& group) {
  const std::size_t count = all.count / static_cast<std::size_t>(group.size());
  if (all.data == nullptr) return {nullptr, count, all.type, all.memory};
  const std::size_t offset = static_cast<std::size_t>(group.rank()) * count * size_of(all.type);
  return {static_cast<std::byte*>(all.data) + offset, count, all.type, all.memory};
}

}  // namespace

const World& world_of(const Communicator& communicator) { return communicator.group_->world(); }

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
  return issue(group(), {.kind = CollectiveKind::all_reduce, .in = in_out, .out = copy(in_out), .op = &op},
               options);
}

Work Communicator::all_reduce(const ConstBuffer& in, const Buffer& out, const ReduceOp& op,
                              const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::all_reduce, .in = copy(in), .out = copy(out), .op = &op},
               options);
}

Work Communicator::reduce(const Buffer& in_out, const ReduceOp& op, int root, const CallOptions& options) {
  return issue(group(),
               {.kind = CollectiveKind::reduce, .in = in_out, .out = copy(in_out), .op = &op, .root = root},
               options);
}

Work Communicator::reduce(const ConstBuffer& in, const Buffer& out, const ReduceOp& op, int root,
                          const CallOptions& options) {
  return issue(group(),
               {.kind = CollectiveKind::reduce, .in = copy(in), .out = copy(out), .op = &op, .root = root},
               options);
}

Work Communicator::broadcast(const Buffer& in_out, int root, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::broadcast, .in = in_out, .out = copy(in_out), .root = root},
               options);
}

Work Communicator::all_gather(const ConstBuffer& in, const Buffer& out, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::all_gather, .in = copy(in), .out = copy(out)}, options);
}

Work Communicator::all_gather(const Buffer& in_out, const CallOptions& options) {
  return issue(group(),
               {.kind = CollectiveKind::all_gather, .in = own_block(in_out, group()), .out = copy(in_out)},
               options);
}

Work Communicator::all_gather_v(const ConstBuffer& in, const Buffer& out,
                                std::span<const std::uint64_t> counts, const CallOptions& options) {
  return issue(group(),
               {.kind = CollectiveKind::all_gather_v, .in = copy(in), .out = copy(out), .out_counts = counts},
               options);
}

Work Communicator::reduce_scatter(const ConstBuffer& in, const Buffer& out, const ReduceOp& op,
                                  const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::reduce_scatter, .in = copy(in), .out = copy(out), .op = &op},
               options);
}

Work Communicator::reduce_scatter(const Buffer& in_out, const ReduceOp& op, const CallOptions& options) {
  return issue(
      group(),
      {.kind = CollectiveKind::reduce_scatter, .in = in_out, .out = own_block(in_out, group()), .op = &op},
      options);
}

Work Communicator::reduce_scatter_v(const ConstBuffer& in, const Buffer& out,
                                    std::span<const std::uint64_t> counts, const ReduceOp& op,
                                    const CallOptions& options) {
  return issue(group(),
               {.kind = CollectiveKind::reduce_scatter_v,
                .in = copy(in),
                .out = copy(out),
                .op = &op,
                .in_counts = counts},
               options);
}

Work Communicator::all_to_all(const ConstBuffer& in, const Buffer& out, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::all_to_all, .in = copy(in), .out = copy(out)}, options);
}

Work Communicator::all_to_all(const Buffer& in_out, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::all_to_all, .in = in_out, .out = copy(in_out)}, options);
}

Work Communicator::all_to_all_v(const ConstBuffer& in, std::span<const std::uint64_t> in_counts,
                                const Buffer& out, std::span<const std::uint64_t> out_counts,
                                const CallOptions& options) {
  return issue(group(),
               {.kind = CollectiveKind::all_to_all_v,
                .in = copy(in),
                .out = copy(out),
                .in_counts = in_counts,
                .out_counts = out_counts},
               options);
}

Work Communicator::gather(const ConstBuffer& in, const Buffer& out, int root, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::gather, .in = copy(in), .out = copy(out), .root = root},
               options);
}

Work Communicator::gather_v(const ConstBuffer& in, const Buffer& out, std::span<const std::uint64_t> counts,
                            int root, const CallOptions& options) {
  return issue(group(),
               {.kind = CollectiveKind::gather_v,
                .in = copy(in),
                .out = copy(out),
                .root = root,
                .out_counts = counts},
               options);
}

Work Communicator::scatter(const ConstBuffer& in, const Buffer& out, int root, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::scatter, .in = copy(in), .out = copy(out), .root = root},
               options);
}

Work Communicator::scatter_v(const ConstBuffer& in, std::span<const std::uint64_t> counts, const Buffer& out,
                             int root, const CallOptions& options) {
  return issue(group(),
               {.kind = CollectiveKind::scatter_v,
                .in = copy(in),
                .out = copy(out),
                .root = root,
                .in_counts = counts},
               options);
}

Work Communicator::scan(const Buffer& in_out, const ReduceOp& op, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::scan, .in = in_out, .out = copy(in_out), .op = &op},
               options);
}

Work Communicator::scan(const ConstBuffer& in, const Buffer& out, const ReduceOp& op,
                        const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::scan, .in = copy(in), .out = copy(out), .op = &op}, options);
}

Work Communicator::exscan(const Buffer& in_out, const ReduceOp& op, const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::exscan, .in = in_out, .out = copy(in_out), .op = &op},
               options);
}

Work Communicator::exscan(const ConstBuffer& in, const Buffer& out, const ReduceOp& op,
                          const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::exscan, .in = copy(in), .out = copy(out), .op = &op},
               options);
}

Work Communicator::barrier(const CallOptions& options) {
  return issue(group(), {.kind = CollectiveKind::barrier}, options);
}

Work Communicator::send(const ConstBuffer& buffer, int peer, std::uint64_t tag, const CallOptions& options) {
  Transfer transfer{Transfer::Direction::send, {}, peer, tag};
  transfer.buffer = Buffer(const_cast<void*>(buffer.data), buffer.count, buffer.type, buffer.memory);
  return batch({&transfer, 1}, options);
}

Work Communicator::recv(const Buffer& buffer, int peer, std::uint64_t tag, const CallOptions& options) {
  const Transfer transfer{Transfer::Direction::recv, buffer, peer, tag};
  return batch({&transfer, 1}, options);
}

Work Communicator::batch(std::span<const Transfer> transfers, const CallOptions& options) {
  return group().transfers(transfers, options);
}

void Communicator::abort(const std::string& reason) {
  if (group().world().engine->driver.forked()) return;
  group().abort(Status(Code::aborted, "aborted by " + describe(rank()) + ": " + reason,
                       group().ranks()[static_cast<std::size_t>(rank())]));
}

Communicator::Statistics Communicator::statistics() const {
  World& world = group().world();
  std::optional<DriverGuard> guard;  // inside a `then` callback, this thread drives already
  if (!world.engine->driver.driven_by_this_thread()) guard.emplace(world.engine->driver);
  const ChannelCounters counters = world.mesh->counters();
  return {group().operations_issued(), group().registered_operations(),
          counters.messages_sent,      counters.messages_received,
          counters.frames_sent,        counters.bytes_sent,
          counters.bytes_received,     counters.bytes_in_place,
          world.mesh->open_channels()};
}

}  // namespace tutti
