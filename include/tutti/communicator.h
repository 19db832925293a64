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
#include <tutti/reduce_op.h>
#include <tutti/status.h>
#include <tutti/types.h>
#include <tutti/work.h>

// A `Communicator` is a group of ranks that compute together: it issues their collectives and messages.
namespace tutti {

class Group;
class GroupMemory;
struct Shrunk;
struct CostModel;
struct World;

// `CallOptions` are what a single call may ask for.
struct CallOptions {
  // The operation fails with `timeout`, and the communicator with it, if it is not over by then. Zero means
  // the communicator's default (TUTTI_TIMEOUT).
  std::chrono::nanoseconds timeout{0};
  // An algorithm by name ("ring"), the same on all ranks. If it is empty, one is chosen by size. `tutti
  // explain` lists them.
  std::string_view algorithm = {};
};

// Wildcards of `recv`, and the colour that joins no group in `split`.
inline constexpr int any_rank = -1;
inline constexpr std::uint64_t any_tag = std::numeric_limits<std::uint64_t>::max();
inline constexpr int no_color = -1;

// A `Transfer` is one message of a batch.
struct Transfer {
  enum class Direction : std::uint8_t { send, recv };
  Direction direction = Direction::send;
  Buffer buffer;  // only read when sending
  int peer = 0;
  std::uint64_t tag = 0;
};

// An `Allocation` is memory from `Communicator::allocate`. It is freed soon after all ranks have destroyed
// theirs. It keeps alive what it needs of the communicator: while it lives, the end of the last
// `Communicator` neither ends operations in flight nor tells the other ranks that this one has left.
class TUTTI_API Allocation {
 public:
  Allocation() = default;
  Allocation(Allocation&&) noexcept = default;
  Allocation& operator=(Allocation&& other) noexcept;
  ~Allocation();

  void* data() const;
  std::size_t bytes() const;
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data()), bytes() / sizeof(T)};
  }
  // Tells whether other ranks reach it directly. If not, it is ordinary memory.
  bool registered() const;

 private:
  friend class Communicator;
  Allocation(std::shared_ptr<Group> group, std::shared_ptr<GroupMemory> memory);
  void let_go();
  std::shared_ptr<Group> group_;
  std::shared_ptr<GroupMemory> memory_;  // destroyed before the group
};

// A `Communicator` is a group of ranks that compute together.
//
// Every rank calls the same collectives in the same order with the same count, type, operation and root;
// ranks that disagree get `mismatch`, on both sides, with both calls in words. Operations start at once and
// run concurrently; each returns a `Work`. Buffers are neither copied nor owned: an input must not change and
// an output not be read until the operation is over; after that they are never touched again, also if it
// failed. In and out must be disjoint or exactly the same (in place), else `invalid_argument`. Counts are
// elements. A count of zero is fine.
//
// Errors never throw here: they come out of `Work::wait`. A failed collective, a timeout or a lost peer fails
// the whole communicator: everything pending and everything later ends with that first cause.
//
// Thread rule: any thread may issue, but threads that issue on one communicator must order themselves, since
// operations match by order of issue. `send` and `recv` match by tag and may be issued concurrently.
class TUTTI_API Communicator {
 public:
  // An empty communicator, as is one that was moved from: every call throws `Error`, invalid_argument, until
  // another communicator is assigned to it.
  Communicator() = default;
  Communicator(Communicator&&) noexcept = default;
  Communicator& operator=(Communicator&&) noexcept = default;
  // Operations still in flight end with `aborted`. The destructor never hangs. Inside a `then` callback the
  // operations end soon after the callback.
  ~Communicator();

  int rank() const;
  int size() const;
  explicit operator bool() const { return group_ != nullptr; }

  // Every rank: out[i] = in[i] of rank 0 op ... op in[i] of rank size-1. The result has the same bits on all
  // ranks.
  Work all_reduce(const Buffer& in_out, const ReduceOp& op, const CallOptions& options = {});
  Work all_reduce(const ConstBuffer& in, const Buffer& out, const ReduceOp& op,
                  const CallOptions& options = {});
  // Works as all_reduce, with the result on `root` only. Elsewhere `out` is ignored, and in the in-place form
  // it stays as it was.
  Work reduce(const Buffer& in_out, const ReduceOp& op, int root, const CallOptions& options = {});
  Work reduce(const ConstBuffer& in, const Buffer& out, const ReduceOp& op, int root,
              const CallOptions& options = {});
  // Every rank's buffer becomes the root's.
  Work broadcast(const Buffer& in_out, int root, const CallOptions& options = {});
  // out = in of rank 0, in of rank 1, ...; out.count = size * in.count. In place: a rank's own block of
  // `in_out` holds its input.
  Work all_gather(const ConstBuffer& in, const Buffer& out, const CallOptions& options = {});
  Work all_gather(const Buffer& in_out, const CallOptions& options = {});
  // counts[r] elements come from rank r. All ranks pass the same counts.
  Work all_gather_v(const ConstBuffer& in, const Buffer& out, std::span<const std::uint64_t> counts,
                    const CallOptions& options = {});
  // Block r of the reduced vector goes to rank r; in.count = size * out.count. In place: the result replaces
  // a rank's own block of `in_out`, the other blocks are undefined afterwards.
  Work reduce_scatter(const ConstBuffer& in, const Buffer& out, const ReduceOp& op,
                      const CallOptions& options = {});
  Work reduce_scatter(const Buffer& in_out, const ReduceOp& op, const CallOptions& options = {});
  Work reduce_scatter_v(const ConstBuffer& in, const Buffer& out, std::span<const std::uint64_t> counts,
                        const ReduceOp& op, const CallOptions& options = {});
  // Block r of `in` goes to rank r, block r of `out` comes from it; both hold size equal blocks.
  Work all_to_all(const ConstBuffer& in, const Buffer& out, const CallOptions& options = {});
  Work all_to_all(const Buffer& in_out, const CallOptions& options = {});
  // in_counts[r] elements go to rank r, out_counts[r] come from it; each side must expect what the other
  // sends.
  Work all_to_all_v(const ConstBuffer& in, std::span<const std::uint64_t> in_counts, const Buffer& out,
                    std::span<const std::uint64_t> out_counts, const CallOptions& options = {});
  // Works as all_gather, with the result on `root` only. Elsewhere `out` and `counts` are ignored.
  Work gather(const ConstBuffer& in, const Buffer& out, int root, const CallOptions& options = {});
  Work gather_v(const ConstBuffer& in, const Buffer& out, std::span<const std::uint64_t> counts, int root,
                const CallOptions& options = {});
  // Block r of the root's `in` goes to rank r; elsewhere `in` and `counts` are ignored.
  Work scatter(const ConstBuffer& in, const Buffer& out, int root, const CallOptions& options = {});
  Work scatter_v(const ConstBuffer& in, std::span<const std::uint64_t> counts, const Buffer& out, int root,
                 const CallOptions& options = {});
  // Rank r: the reduction over ranks 0..r (scan) or 0..r-1 (exscan; rank 0's output is left as it was).
  Work scan(const Buffer& in_out, const ReduceOp& op, const CallOptions& options = {});
  Work scan(const ConstBuffer& in, const Buffer& out, const ReduceOp& op, const CallOptions& options = {});
  Work exscan(const Buffer& in_out, const ReduceOp& op, const CallOptions& options = {});
  Work exscan(const ConstBuffer& in, const Buffer& out, const ReduceOp& op, const CallOptions& options = {});
  // The operation is over when every rank has called it.
  Work barrier(const CallOptions& options = {});

  // Messages between two ranks are outside the order of collectives. Messages from one rank with equal
  // tags arrive in order of sending. A send is over when its buffer may be reused. The receive's buffer may
  // be larger than the message (Work::received tells); if it is smaller the receive fails with `mismatch`.
  // Tags are below 2^63. No message can be received twice, and a receive from `any_rank` or with `any_tag`
  // takes the earliest that fits.
  Work send(const ConstBuffer& buffer, int peer, std::uint64_t tag = 0, const CallOptions& options = {});
  Work recv(const Buffer& buffer, int peer = any_rank, std::uint64_t tag = any_tag,
            const CallOptions& options = {});
  // Starts all transfers together. The operation is over when the last one is, and fails if one fails.
  Work batch(std::span<const Transfer> transfers, const CallOptions& options = {});

  // The ranks with equal `color` form a communicator, ordered by `key`, then by rank. Connections are shared
  // with this one. Ranks that pass `no_color` get no value. The call is collective and blocks; it throws
  // `Error`.
  std::optional<Communicator> split(int color, int key = 0);

  // Returns memory that is registered with the transports between the ranks, zeroed and page aligned.
  // Collectives of this communicator whose buffers lie in such memory on all ranks copy nothing in or out (on
  // one host: all_reduce, reduce, broadcast, all_gather, reduce_scatter, gather, scatter; not for averages
  // and scaled sums); other ranks then write into it while the operation runs. Any part of it may be a buffer
  // of anything. The call is collective and blocks; sizes may differ. It throws `Error`: resource_exhausted
  // on all ranks if a host cannot provide that much memory.
  Allocation allocate(std::size_t bytes);

  // Ends all pending and later operations of this communicator with `aborted`, here and on all ranks that can
  // be reached. Any thread may call it; it returns at once.
  void abort(const std::string& reason);
  // Returns ok, or the first cause of failure.
  Status status() const;
  // Returns the communicator of the survivors, in the same order, after a rank was lost. Every survivor calls
  // it, and gets the same one. The old communicator cannot be used afterwards (and fails now, if it has not
  // yet). The call blocks. It throws `Error`: peer_lost if no more than half of the ranks are left, or, if
  // `min_size` is given, fewer than that; aborted if the others go on without this rank; timeout if a
  // survivor does not call it within TUTTI_TIMEOUT.
  Shrunk shrink(int min_size = 0);

  // "rank 3 (host b, pid 4711)".
  std::string describe(int rank) const;

  struct Statistics {
    std::uint64_t operations = 0;
    std::uint64_t registered_operations = 0;  // that worked in place on memory from `allocate`
    std::uint64_t messages_sent = 0;          // of the whole process, as are all figures below
    std::uint64_t messages_received = 0;
    std::uint64_t frames_sent = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_received = 0;
    int connections = 0;
  };
  Statistics statistics() const;

  // A descriptor for programs with their own event loop. When it is readable, call `progress`, which returns
  // true if it did anything.
  int descriptor() const;
  bool progress();

 private:
  friend Communicator create_communicator(const std::shared_ptr<World>& world);
  friend const CostModel& agreed_costs(const Communicator& communicator);
  explicit Communicator(std::shared_ptr<Group> group);
  Group& group() const;
  std::shared_ptr<Group> group_;
};

struct Shrunk {
  Communicator communicator;
  // Every survivor has completed this many of the old communicator's collectives, counted from the first one
  // issued. A survivor may have completed more.
  std::uint64_t completed = 0;
};

}  // namespace tutti
