#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/buffer.h>
#include <tutti/export.h>
#include <tutti/memory.h>
#include <tutti/reduce_op.h>
#include <tutti/status.h>
#include <tutti/types.h>
#include <tutti/work.h>

// This file declares `Communicator`, which issues collectives and messages. The files in
// collectives/schedule/algorithms/ cite where each algorithm comes from.
namespace tutti {

class Group;
class GroupMemory;
struct Shrunk;
struct World;

// `CallOptions` are the options of a single call.
struct CallOptions {
  // The time limit, counted from the call. When it expires, the operation and its communicator fail with
  // `timeout`. Zero means the default, TUTTI_TIMEOUT.
  std::chrono::nanoseconds timeout{0};
  // The name of an algorithm ("ring"), equal on all ranks. If it is empty, the library chooses by estimated
  // cost. `tutti explain` lists the algorithms. `send`, `recv` and `batch` ignore it.
  std::string_view algorithm = {};
  // The operation begins after all work that is already in this stream (a cudaStream_t) of the buffers'
  // device. Null means no stream. Only messages in device memory, and collectives that a library carries
  // out, can follow a stream. The messages of a batch follow a stream of the first message's device.
  // `region` is reserved for the registered region in which the buffers lie, and must be null. A call with a
  // stream that nothing can follow, or with a region, ends with `unsupported`.
  void* stream = nullptr;
  const void* region = nullptr;
};

// `any_rank` and `any_tag` are the wildcards of `recv`. A rank that passes `no_color` to `split` joins no
// group.
inline constexpr int any_rank = -1;
inline constexpr std::uint64_t any_tag = std::numeric_limits<std::uint64_t>::max();
inline constexpr int no_color = -1;

// A `Transfer` is one message of a batch; `peer` and `tag` are as in `send` and `recv`.
struct Transfer {
  enum class Direction : std::uint8_t { send, recv };
  Direction direction = Direction::send;
  Buffer buffer;  // only read when sending
  int peer = 0;
  std::uint64_t tag = 0;
};

// An `Allocation` is memory from `Communicator::allocate`. Memory of the host is freed soon after
// all ranks have destroyed their `Allocation`. Memory of a device is freed when this rank's
// `Allocation` is destroyed. By then, all work of the device that uses the memory must have ended. The
// destructor may wait for the device. Operations in flight continue while an `Allocation` lives,
// even after the last `Communicator` has been destroyed. During that time, the other ranks do not
// learn that this rank has left.
//
// Thread rule: any thread may destroy it, when no other thread uses it.
class TUTTI_API Allocation {
 public:
  Allocation() = default;
  Allocation(Allocation&&) noexcept = default;
  Allocation& operator=(Allocation&& other) noexcept;
  ~Allocation();

  // Return the address and the size in bytes. These are null and 0 if the `Allocation` is empty or was moved
  // from. An address of the host is the start of a page. An address of a device can only be used on the
  // device.
  void* data() const;
  std::size_t bytes() const;
  // Returns the memory as elements of type T; remaining bytes at the end are left out.
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data()), bytes() / sizeof(T)};
  }
  // Returns whether collectives can work on the memory in place. For memory of the host, this means
  // that the other ranks have mapped it. For memory of a device, this means that a library has
  // registered it.
  bool registered() const;

 private:
  friend class Communicator;
  Allocation(std::shared_ptr<Group> group, std::shared_ptr<GroupMemory> memory);
  void let_go();
  std::shared_ptr<Group> group_;
  std::shared_ptr<GroupMemory> memory_;  // destroyed before the group
};

// A `Registration` keeps memory registered (`Communicator::register_memory`) as long as it exists. Like an
// `Allocation`, it also lets operations in flight continue after the last `Communicator` has been destroyed.
//
// Thread rule: any thread may destroy it, after all operations that use the memory have ended.
class TUTTI_API Registration {
 public:
  Registration() = default;
  Registration(Registration&&) noexcept = default;
  Registration& operator=(Registration&&) noexcept = default;

 private:
  friend class Communicator;
  std::shared_ptr<void> held_;
};

// A `Communicator` is a group of ranks that compute together.
//
// Every rank calls the same collectives in the same order with the same count, type, operation, root and kind
// of memory. If calls differ, all ranks get `mismatch`, whose message describes both calls. Operations start
// at once and run concurrently; each returns a `Work`. Counts are in elements, and may be zero.
//
// The library neither copies nor owns buffers. The program must not change an input, nor access an
// output, until the operation has ended. After that the library does not touch them, even if the
// operation failed (one exception: memory from `allocate`). Input and output must be disjoint or
// the same memory (in place). In some collectives one buffer holds the block of one rank, and the
// other the blocks of all ranks. There, in place means that the small buffer is the rank's own
// block of the large one.
//
// Errors: operations do not throw; `Work::wait` does. A call with one of these two errors does not count as
// an operation:
// - `invalid_argument`: a count, type or root is wrong, buffers overlap, the `memory` of input and output
//   differs, or the stream is of another device than the buffers.
// - `unsupported`: the reduction is not defined on the type, nothing can follow the stream, the stream is
//   being captured into a graph, or `region` is not null.
//
// A collective on device memory may be one that neither tutti nor an added library can carry out (see
// `Memory`). Such a collective does count as an operation. It ends with `unsupported` on all ranks, and the
// communicator remains usable. Every other failure of a collective, and every timeout or lost peer, makes the
// whole communicator fail: all its pending and later operations end with that first cause. `split`, `group`,
// `allocate` and `shrink` block, and throw `Error` if they fail.
//
// A library that was added to tutti may carry out whole collectives, usually on device memory. The
// ranks of a communicator open the library together, at the first collective that the library
// carries out. This first collective therefore blocks until all ranks have called it. Inside a
// `then` callback, this first collective fails with `invalid_argument`.
//
// Thread rule: any thread may call any function. But threads that issue collectives on one communicator must
// synchronize, since all ranks must issue these collectives in the same order. `split`, `allocate` and
// `shrink` are collectives in this sense. `send` and `recv` match by tag and may be issued concurrently.
class TUTTI_API Communicator {
 public:
  // Makes an empty communicator. A communicator that was moved from is empty, too. Every call on an empty
  // communicator throws `Error` (invalid_argument) until another communicator is assigned to it.
  Communicator() = default;
  Communicator(Communicator&&) noexcept = default;
  Communicator& operator=(Communicator&&) noexcept = default;
  // Ends operations still in flight with `aborted`, and takes two seconds at most. If it runs inside a `then`
  // callback, the operations end soon after the callback.
  ~Communicator();

  // Return this rank's number, from 0, and the number of ranks.
  int rank() const;
  int size() const;
  explicit operator bool() const { return group_ != nullptr; }

  // Reduces element by element to all ranks: out[i] = in[i] of rank 0 op ... op in[i] of rank size-1.
  // in.count = out.count. The result has the same bits on all ranks.
  Work all_reduce(const Buffer& in_out, const ReduceOp& op, const CallOptions& options = {});
  Work all_reduce(const ConstBuffer& in, const Buffer& out, const ReduceOp& op,
                  const CallOptions& options = {});
  // Like all_reduce, with the result on `root` only. Other ranks ignore `out`. In place, their buffer stays
  // unchanged.
  Work reduce(const Buffer& in_out, const ReduceOp& op, int root, const CallOptions& options = {});
  Work reduce(const ConstBuffer& in, const Buffer& out, const ReduceOp& op, int root,
              const CallOptions& options = {});
  // Copies the root's buffer to all ranks. All counts are equal.
  Work broadcast(const Buffer& in_out, int root, const CallOptions& options = {});
  // Concatenates the inputs in rank order on all ranks; out.count = size * in.count. In place: a rank's own
  // block of `in_out` holds its input.
  Work all_gather(const ConstBuffer& in, const Buffer& out, const CallOptions& options = {});
  Work all_gather(const Buffer& in_out, const CallOptions& options = {});
  // Like all_gather, with counts[r] elements from rank r. All ranks pass the same list of `size` counts.
  // in.count is this rank's own count, and out.count is the sum of all counts.
  Work all_gather_v(const ConstBuffer& in, const Buffer& out, std::span<const std::uint64_t> counts,
                    const CallOptions& options = {});
  // Reduces, then gives block r of the result to rank r; in.count = size * out.count. In place: the result
  // replaces a rank's own block of `in_out`, and the other blocks are undefined afterwards. The _v form gives
  // counts[r] elements to rank r. All ranks pass the same list of `size` counts, whose sum is in.count.
  Work reduce_scatter(const ConstBuffer& in, const Buffer& out, const ReduceOp& op,
                      const CallOptions& options = {});
  Work reduce_scatter(const Buffer& in_out, const ReduceOp& op, const CallOptions& options = {});
  Work reduce_scatter_v(const ConstBuffer& in, const Buffer& out, std::span<const std::uint64_t> counts,
                        const ReduceOp& op, const CallOptions& options = {});
  // Sends block r of `in` to rank r, and receives block r of `out` from it. Both buffers hold `size` equal
  // blocks; in.count = out.count, equal on all ranks.
  Work all_to_all(const ConstBuffer& in, const Buffer& out, const CallOptions& options = {});
  Work all_to_all(const Buffer& in_out, const CallOptions& options = {});
  // Sends in_counts[r] elements to rank r, and receives out_counts[r] from it. Blocks lie one after the
  // other, in rank order. If a receiver's count differs from the sender's, all ranks get `mismatch`.
  Work all_to_all_v(const ConstBuffer& in, std::span<const std::uint64_t> in_counts, const Buffer& out,
                    std::span<const std::uint64_t> out_counts, const CallOptions& options = {});
  // Like all_gather, with the result on `root` only. Other ranks ignore `out` and `counts`. In place: the
  // root's `in` is its own block of `out`.
  Work gather(const ConstBuffer& in, const Buffer& out, int root, const CallOptions& options = {});
  Work gather_v(const ConstBuffer& in, const Buffer& out, std::span<const std::uint64_t> counts, int root,
                const CallOptions& options = {});
  // Sends block r of the root's `in` to rank r; the root's in.count = size * out.count (scatter_v: the sum of
  // the counts). Other ranks ignore `in` and `counts`. In place: the root's `out` is its own block of `in`.
  Work scatter(const ConstBuffer& in, const Buffer& out, int root, const CallOptions& options = {});
  Work scatter_v(const ConstBuffer& in, std::span<const std::uint64_t> counts, const Buffer& out, int root,
                 const CallOptions& options = {});
  // Give rank r the reduction over ranks 0..r (scan) or 0..r-1 (exscan; rank 0's output stays as it was).
  // in.count = out.count.
  Work scan(const Buffer& in_out, const ReduceOp& op, const CallOptions& options = {});
  Work scan(const ConstBuffer& in, const Buffer& out, const ReduceOp& op, const CallOptions& options = {});
  Work exscan(const Buffer& in_out, const ReduceOp& op, const CallOptions& options = {});
  Work exscan(const ConstBuffer& in, const Buffer& out, const ReduceOp& op, const CallOptions& options = {});
  // Waits for all ranks: the operation ends when every rank has called `barrier`.
  Work barrier(const CallOptions& options = {});

  // Send and receive one message. Messages are independent of the order of collectives. Messages from one
  // rank with equal tags arrive in the order of sending. A send ends when its buffer may be reused. The
  // receive's buffer may be larger than the message (`Work::received` returns the message's size); if it is
  // smaller, that receive alone fails with `mismatch`. `peer` is a rank of this communicator; tags are below
  // 2^63. A receive from `any_rank` or with `any_tag` takes the earliest message that fits.
  Work send(const ConstBuffer& buffer, int peer, std::uint64_t tag = 0, const CallOptions& options = {});
  Work recv(const Buffer& buffer, int peer = any_rank, std::uint64_t tag = any_tag,
            const CallOptions& options = {});
  // Starts all transfers together. The operation ends when all transfers have ended, and fails if one of them
  // fails. The array is copied; the buffers are not.
  Work batch(std::span<const Transfer> transfers, const CallOptions& options = {});

  // Makes one communicator for each color, from the ranks that pass that color. Its ranks are ordered by
  // `key`, then by rank. The new communicators share the connections and the memory of this world, and need
  // no further descriptors or threads. Ranks that pass `no_color` get no value. The call is collective and
  // blocks. It throws `Error` if it fails.
  std::optional<Communicator> split(int color, int key = 0);

  // Makes a communicator of some ranks, as MPI_Comm_create_group does. Only the listed ranks call it; all
  // other ranks take no part and do not learn of it. `ranks` lists ranks of this communicator, in the order
  // that they get in the new one. All callers pass the same list. Threads that make groups at the same time
  // must pass different keys. `algorithm` is ignored. The call blocks. If it fails, it throws `Error` with
  // one of these codes:
  // - invalid_argument, at once: the list leaves out this rank, names a rank twice, or names a rank that does
  //   not exist.
  // - mismatch: another rank passes a different list with the same lowest rank.
  // - timeout: a rank does not call, or passes a list with another lowest rank. The error names that rank.
  //   This communicator fails, too.
  Communicator group(std::span<const int> ranks, int key = 0, const CallOptions& options = {});

  // Returns zeroed, page-aligned memory that is registered with the transports between the ranks.
  //
  // On one host, some collectives of this communicator copy nothing in or out if their buffers lie
  // in such memory on all ranks. In all_reduce, reduce and broadcast, a buffer must have 128 KiB or
  // more. In all_gather, reduce_scatter, gather and scatter, each rank's block must have 128 KiB or
  // more. All other collectives always copy. So do averages in all_reduce and reduce, and all
  // premultiplied sums. In a collective that does not copy, other ranks write into the memory while
  // the operation runs. After a failure they may still finish a piece of 32 KiB. Any part of the
  // memory may be a buffer of any operation.
  //
  // If `memory` names a CUDA device, the memory is that device's: zeroed, and registered with the library
  // that carries out collectives on such memory. It comes from NCCL where NCCL is used: some of NCCL's
  // algorithms avoid copies only in memory that NCCL has allocated. Ranks may name different devices.
  //
  // The call is collective and blocks. Ranks may pass different sizes. If it fails, it throws an `Error` on
  // all ranks, and the error names a rank. The communicator remains usable. The code is one of these:
  // - resource_exhausted: a host or a device does not have enough memory.
  // - invalid_argument: a device does not exist.
  // - unsupported: no library can use the device.
  // - mismatch: some ranks name a device and others the host.
  Allocation allocate(std::size_t bytes, Memory memory = {});
  // Registers memory of the program with the transports of this `init`, as `allocate` does with its memory.
  // Also registers it with the libraries that carry out whole collectives. Transports that can write into a
  // peer's memory then write large messages straight into receive buffers in this memory, without copies. For
  // other transports this changes nothing. The memory must not be freed before the result is destroyed. Only
  // this rank is involved. The call may take a while. It throws `Error` (resource_exhausted) if the system
  // does not let the process register more memory.
  Registration register_memory(std::span<std::byte> memory);

  // Ends all pending and later operations of this communicator with `aborted`, here and on all ranks that can
  // be reached. Any thread may call it; it returns at once.
  void abort(const std::string& reason);
  // Returns ok, or the first cause of failure. Any thread may call it.
  Status status() const;
  // Returns the communicator of the survivors, in the same order, after a rank was lost. Every survivor must
  // call it. The old communicator cannot be used afterwards: if it has not failed yet, this call makes it
  // fail. The call blocks. If it fails, it throws `Error` with one of these codes:
  // - peer_lost: fewer than `min_size` ranks are left (zero requires more than half of the ranks).
  // - aborted: the other ranks continue without this rank.
  // - timeout: a survivor does not call `shrink` within TUTTI_TIMEOUT.
  Shrunk shrink(int min_size = 0);

  // Returns a rank's name for messages: "rank 3 (host b, pid 4711)".
  std::string describe(int rank) const;

  struct Statistics {
    std::uint64_t operations = 0;             // collectives and messages of this communicator
    std::uint64_t registered_operations = 0;  // operations that worked in place on memory from `allocate`
    std::uint64_t messages_sent = 0;          // this and all below: totals of one `init`
    std::uint64_t messages_received = 0;
    std::uint64_t frames_sent = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_received = 0;
    std::uint64_t bytes_in_place = 0;  // received bytes that peers wrote straight into registered memory
    int connections = 0;
  };
  // Returns the counts so far. Any thread may call it, also inside a `then` callback.
  Statistics statistics() const;

  // For programs that have their own event loop: `descriptor` is readable when there is something to do.
  // Then call `progress`, which returns true if it did anything. The program must not read, write or close
  // the descriptor.
  int descriptor() const;
  bool progress();

 private:
  friend Communicator create_communicator(const std::shared_ptr<World>& world);
  friend const World& world_of(const Communicator& communicator);
  explicit Communicator(std::shared_ptr<Group> group);
  Group& group() const;
  std::shared_ptr<Group> group_;
};

// `Shrunk` is the result of `Communicator::shrink`.
struct Shrunk {
  Communicator communicator;
  // Every survivor has completed this many of the old communicator's collectives, counted from the first one
  // issued. A survivor may have completed more.
  std::uint64_t completed = 0;
};

}  // namespace tutti
