#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <tutti/buffer.h>
#include <tutti/reduce_op.h>
#include <tutti/types.h>

namespace tutti {

// `CollectiveArgs` is one rank's view of one collective, as plain data: what algorithms are chosen from, and
// what error messages describe.
struct CollectiveArgs {
  CollectiveKind kind = CollectiveKind::barrier;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  // Elements of one rank's share: the whole vector for all_reduce, reduce, broadcast, scan, exscan; one block
  // for all_gather, reduce_scatter, all_to_all, gather, scatter; zero for barrier and the _v kinds.
  std::uint64_t count = 0;
  const void* input = nullptr;  // equal to `output` when in place
  void* output = nullptr;
  // The _v kinds: elements per rank on the input and on the output side (unused side empty): all_gather_v has
  // only output counts, reduce_scatter_v only input counts.
  std::span<const std::uint64_t> input_counts = {};
  std::span<const std::uint64_t> output_counts = {};
  std::uint8_t algorithm = 0;  // 0: the selector's choice; otherwise the id of `Algorithm`
};

// A `Composite` is a call of the user's that is carried out by several collectives. In their fingerprints it
// stands where an algorithm would, so these numbers are no algorithm's.
enum class Composite : std::uint8_t { none = 0, init = 253, split = 254, allocate = 255 };

// A `Fingerprint` is what must be equal on all ranks of a collective. It travels in every message header, so
// that a rank that calls something else is told so, with both calls in words.
struct Fingerprint {
  CollectiveKind kind = CollectiveKind::barrier;
  DataType type = DataType::uint8;
  ReduceOp::Kind op = ReduceOp::Kind::sum;
  std::uint8_t algorithm = 0;  // that the caller asks for, or a Composite
  std::int32_t root = 0;
  // A digest of the counts for all_gather_v and reduce_scatter_v; 0 for the other _v kinds.
  std::uint64_t count = 0;
  // It has no padding, so that it can be compared as sixteen bytes.
  friend bool operator==(const Fingerprint& a, const Fingerprint& b) {
    using Words = std::array<std::uint64_t, 2>;
    return std::bit_cast<Words>(a) == std::bit_cast<Words>(b);
  }
};
static_assert(sizeof(Fingerprint) == 16 && std::has_unique_object_representations_v<Fingerprint>);

// Fields that mean nothing for the kind (the root of an all_reduce) are left out, so they never differ.
Fingerprint fingerprint(const CollectiveArgs& args);
// The call of which this collective is a part; `none` for a collective that the user has called.
Composite composite_of(const Fingerprint& call);
// The name of the call that the user made: "all_reduce", "split".
std::string_view name_of(const Fingerprint& call);
// The bytes of `count` elements; nothing where the count means something else, or nothing, or is not the
// user's.
std::optional<std::uint64_t> known_bytes(const Fingerprint& call);
// "all_reduce(count=1024, float32, sum)", "broadcast(count=4, int32, root=2, algorithm=3)", "split()". An
// algorithm has a number only, unless its name is given.
std::string to_string(const Fingerprint& call, std::string_view algorithm = {});

}  // namespace tutti
