#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <tutti/reduce_op.h>
#include <tutti/types.h>

namespace tutti {

// A `Composite` consists of several collectives. Each value except `none` and `offload` is a call of the
// user. `offload` stands for the collectives by which the ranks agree about calls that a library carries out.
enum class Composite : std::uint8_t { none, init, split, allocate, group, offload };

// A `Fingerprint` describes a call. It must be equal on all ranks of a collective. Every message header
// carries it, so a rank that makes a different call gets an error that describes both calls.
//
// Fields that the kind of collective does not use, such as the root of an all_reduce, keep their defaults. So
// they never differ.
struct Fingerprint {
  CollectiveKind kind = CollectiveKind::barrier;
  DataType type = DataType::uint8;
  ReduceOp::Kind op = ReduceOp::Kind::sum;
  std::uint8_t algorithm = 0;               // requested by the caller; 0 if none
  std::int32_t root : 23 = 0;               // less than `max_ranks`; for send and recv the peer, or -1
  bool on_device : 1 = false;               // the buffers lie in the memory of a device
  Composite part_of : 8 = Composite::none;  // the call that this collective is part of
  std::uint64_t count = 0;                  // see `Counted`
  // The structure has no padding, so that it can be compared as sixteen bytes.
  friend bool operator==(const Fingerprint& a, const Fingerprint& b) {
    using Words = std::array<std::uint64_t, 2>;
    return std::bit_cast<Words>(a) == std::bit_cast<Words>(b);
  }
};
static_assert(sizeof(Fingerprint) == 16 && std::has_unique_object_representations_v<Fingerprint>);
static_assert(max_ranks < 1 << 22);

// `Counted` says what `Fingerprint::count` means for a kind of collective:
// - `share`: the number of elements of one rank's share.
// - `digest`: a digest of counts that all ranks know (all_gather_v, reduce_scatter_v).
// - `nothing`: the count is 0, since each rank knows only its own counts (the other _v kinds) or there is
//   nothing to count (barrier).
enum class Counted : std::uint8_t { share, digest, nothing };
Counted counted(CollectiveKind kind);
// Returns a digest of counts. It depends on every count, and on the order and the number of the counts.
std::uint64_t digest_of(std::span<const std::uint64_t> counts);

// Returns the name of the call that the user made, such as "all_reduce" or "split".
std::string_view name_of(const Fingerprint& call);
// Returns the bytes of one rank's share. Returns nothing if `count` means something else, or if the call is
// part of a `Composite`, for which the user gives no count.
std::optional<std::uint64_t> known_bytes(const Fingerprint& call);
// Returns a text such as "all_reduce(count=1024, float32, sum)", "broadcast(count=4, int32, root=2,
// algorithm=3)", "gather_v(int32, root=2, on a device)" or "split()". The algorithm is shown by its number,
// unless `algorithm` gives its name.
std::string to_string(const Fingerprint& call, std::string_view algorithm = {});

}  // namespace tutti
