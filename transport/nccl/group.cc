#include "transport/nccl/group.h"

#include <cstddef>

#include "transport/nccl/arithmetic.h"

namespace tutti::nccl {

namespace {

using Kind = CollectiveKind;

// `Blocks` are the blocks of a buffer, one for each rank, one after the other.
template <typename Byte>
struct Blocks {
  template <typename AnyBuffer>
  Blocks(const AnyBuffer& buffer, std::span<const std::uint64_t> all_counts, int size)
      : next(static_cast<Byte*>(buffer.data)),
        counts(all_counts),
        equal(buffer.count / static_cast<std::uint64_t>(size)),
        element(size_of(buffer.type)) {}

  Byte* next;                             // the first block that has not been taken
  std::span<const std::uint64_t> counts;  // the number of elements of each block
  std::uint64_t equal;                    // the number of elements of every block, if `counts` is empty
  std::size_t element;

  // Takes the next block, which must be the block of `rank`. Returns its address.
  Byte* take(int rank) {
    Byte* const taken = next;
    next += bytes(rank);
    return taken;
  }
  std::uint64_t bytes(int rank) const {
    return (counts.empty() ? equal : counts[static_cast<std::size_t>(rank)]) * element;
  }
};

// Returns whether each rank (in a scatter, only the root) sends one block of its input to every rank.
bool sends_to_all(Kind kind) {
  return kind == Kind::all_to_all || kind == Kind::all_to_all_v || kind == Kind::scatter ||
         kind == Kind::scatter_v;
}

bool receives_from_all(Kind kind) {
  return kind == Kind::all_to_all || kind == Kind::all_to_all_v || kind == Kind::gather ||
         kind == Kind::gather_v;
}

}  // namespace

Status Group::start(std::span<const Call> calls, bool& launched) {
  Status status = check(member_.api.GroupStart(), "ncclGroupStart");
  if (!status.ok()) return status;
  for (const Call& call : calls) {
    if (status.ok()) status = enqueue(call);
  }
  const Outcome ended = member_.api.GroupEnd();
  launched = ended != in_progress;
  if (status.ok() && launched) status = check(ended, "ncclGroupEnd");
  return status;
}

Status Group::finish() {
  Status status;
  for (const Op op : ops_) {
    const Outcome outcome = member_.api.RedOpDestroy(op, member_.comm);
    if (status.ok()) status = check(outcome, "ncclRedOpDestroy");
  }
  ops_.clear();
  const Status freed = free_memory();
  return status.ok() ? freed : status;
}

Status Group::free_memory() {
  Status status;
  const cuda::Api& cuda = member_.device.api();
  for (const cuda::Address address : memory_) {
    const cuda::Outcome outcome = cuda.MemFreeAsync(address, member_.stream);
    if (status.ok()) status = status_of(cuda, outcome, "cuMemFreeAsync");
  }
  memory_.clear();
  return status;
}

Status Group::check(Outcome outcome, const char* attempt) {
  if (error_ == success) error_ = outcome;
  return status_of(member_.api, outcome, attempt, member_.comm);
}

// Collectives that only move elements pass them to NCCL as bytes, so these collectives take
// elements of every type. A call without elements is skipped, since its buffers may be null.
Status Group::enqueue(const Call& call) {
  const auto& [api, device, comm, stream, rank, size] = member_;
  const std::uint64_t count = call.kind == Kind::broadcast ? call.out.count : call.in.count;
  const bool same_everywhere = call.kind == Kind::broadcast || call.kind == Kind::all_gather ||
                               call.kind == Kind::all_reduce || call.kind == Kind::reduce ||
                               call.kind == Kind::reduce_scatter;
  if (same_everywhere && count == 0) return {};
  switch (call.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
    case Kind::reduce_scatter:
    case Kind::reduce_scatter_v:
      return reduce(call);
    case Kind::broadcast: {
      const void* const from = rank == call.root ? call.in.data : call.out.data;
      return check(api.Broadcast(from, call.out.data, call.out.bytes(), uint8, call.root, comm, stream),
                   "ncclBroadcast");
    }
    case Kind::all_gather:
      return check(api.AllGather(call.in.data, call.out.data, call.in.bytes(), uint8, comm, stream),
                   "ncclAllGather");
    case Kind::all_gather_v:
      return gather_blocks(call);
    default:
      return exchange(call);
  }
}

Status Group::reduce(const Call& call) {
  const auto& [api, device, comm, stream, rank, size] = member_;
  const Type type = type_of(call.in.type);
  Op op = sum;
  if (call.op->kind() == ReduceOp::Kind::premultiplied_sum) {
    std::uint64_t factor = factor_as(call.in.type, call.op->factor());
    const Outcome made = api.RedOpCreatePreMulSum(&op, &factor, type, scalar_host_immediate, comm);
    if (made != success) return check(made, "ncclRedOpCreatePreMulSum");
    ops_.push_back(op);
  } else {
    op = op_of(call.op->kind(), call.in.type);
  }
  const void* const in = call.in.data;
  switch (call.kind) {
    case Kind::all_reduce:
      return check(api.AllReduce(in, call.out.data, call.in.count, type, op, comm, stream), "ncclAllReduce");
    case Kind::reduce: {
      void* const out = rank == call.root ? call.out.data : nullptr;
      return check(api.Reduce(in, out, call.in.count, type, op, call.root, comm, stream), "ncclReduce");
    }
    case Kind::reduce_scatter:
      return check(api.ReduceScatter(in, call.out.data, call.out.count, type, op, comm, stream),
                   "ncclReduceScatter");
    default:
      return reduce_blocks(call, type, op);
  }
}

// NCCL has no reduce_scatter with blocks of different sizes, so each block is reduced to its rank.
Status Group::reduce_blocks(const Call& call, Type type, Op op) {
  const auto& [api, device, comm, stream, rank, size] = member_;
  Blocks<const std::byte> blocks(call.in, call.in_counts, size);
  for (int root = 0; root < size; ++root) {
    const std::byte* const from = blocks.take(root);
    const std::uint64_t count = call.in_counts[static_cast<std::size_t>(root)];
    void* const out = rank == root ? call.out.data : nullptr;
    const Outcome outcome = count == 0 ? success : api.Reduce(from, out, count, type, op, root, comm, stream);
    if (outcome != success) return check(outcome, "ncclReduce");
  }
  return {};
}

// NCCL has no all_gather with blocks of different sizes, so each rank broadcasts its block.
Status Group::gather_blocks(const Call& call) {
  const auto& [api, device, comm, stream, rank, size] = member_;
  Blocks<std::byte> blocks(call.out, call.out_counts, size);
  for (int root = 0; root < size; ++root) {
    const std::uint64_t bytes = blocks.bytes(root);
    std::byte* const to = blocks.take(root);
    const void* const from = rank == root ? call.in.data : to;
    const Outcome outcome = bytes == 0 ? success : api.Broadcast(from, to, bytes, uint8, root, comm, stream);
    if (outcome != success) return check(outcome, "ncclBroadcast");
  }
  return {};
}

// Carries out a collective in which each block goes from one rank to one rank.
Status Group::exchange(const Call& call) {
  const bool is_root = member_.rank == call.root || !has_root(call.kind);
  Blocks<const std::byte> in(call.in, call.in_counts, member_.size);
  Blocks<std::byte> out(call.out, call.out_counts, member_.size);
  if (call.in.data == call.out.data && !has_root(call.kind)) {
    const Result<const std::byte*> copy = copy_of(call.in);
    if (!copy.ok()) return copy.status();
    in.next = *copy;
  }
  Status status;
  for (int peer = 0; peer < member_.size && status.ok(); ++peer) {
    if (is_root && receives_from_all(call.kind)) status = receive(out.take(peer), out.bytes(peer), peer);
    if (!status.ok()) break;
    if (is_root && sends_to_all(call.kind)) status = send(in.take(peer), in.bytes(peer), peer);
  }
  if (!status.ok() || !has_root(call.kind)) return status;
  if (receives_from_all(call.kind)) return send(in.next, call.in.bytes(), call.root);
  return receive(out.next, call.out.bytes(), call.root);
}

// Both ranks know the number of bytes, so both skip an empty message.
Status Group::send(const std::byte* from, std::uint64_t bytes, int peer) {
  if (bytes == 0) return {};
  return check(member_.api.Send(from, bytes, uint8, peer, member_.comm, member_.stream), "ncclSend");
}

Status Group::receive(std::byte* to, std::uint64_t bytes, int peer) {
  if (bytes == 0) return {};
  return check(member_.api.Recv(to, bytes, uint8, peer, member_.comm, member_.stream), "ncclRecv");
}

Result<const std::byte*> Group::copy_of(const ConstBuffer& in) {
  const cuda::Api& cuda = member_.device.api();
  cuda::Address copy = 0;
  if (in.bytes() == 0) return static_cast<const std::byte*>(nullptr);
  const cuda::Outcome made = cuda.MemAllocAsync(&copy, in.bytes(), member_.stream);
  if (made != cuda::success) return status_of(cuda, made, "cuMemAllocAsync");
  memory_.push_back(copy);
  const auto from = reinterpret_cast<cuda::Address>(in.data);
  const cuda::Outcome copied = cuda.MemcpyAsync(copy, from, in.bytes(), member_.stream);
  if (copied != cuda::success) return status_of(cuda, copied, "cuMemcpyAsync");
  return reinterpret_cast<const std::byte*>(copy);
}

}  // namespace tutti::nccl
