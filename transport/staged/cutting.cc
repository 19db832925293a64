#include "transport/staged/cutting.h"

#include <algorithm>
#include <span>

namespace tutti::staged {

namespace {

using Kind = CollectiveKind;

std::vector<std::uint64_t> copy_of(std::span<const std::uint64_t> counts) {
  return {counts.begin(), counts.end()};
}

std::vector<std::uint64_t> equal_blocks(std::uint64_t count, std::size_t ranks) {
  return std::vector<std::uint64_t>(ranks, count / ranks);
}

std::vector<std::uint64_t> input_blocks(const Call& call, std::size_t ranks) {
  switch (call.kind) {
    case Kind::reduce_scatter:
    case Kind::scatter:
    case Kind::all_to_all:
      return equal_blocks(call.in.count, ranks);
    case Kind::reduce_scatter_v:
    case Kind::scatter_v:
    case Kind::all_to_all_v:
      return copy_of(call.in_counts);
    default:
      return {call.in.count};
  }
}

std::vector<std::uint64_t> output_blocks(const Call& call, std::size_t ranks) {
  switch (call.kind) {
    case Kind::all_gather:
    case Kind::gather:
    case Kind::all_to_all:
      return equal_blocks(call.out.count, ranks);
    case Kind::all_gather_v:
    case Kind::gather_v:
    case Kind::all_to_all_v:
      return copy_of(call.out_counts);
    default:
      return {call.out.count};
  }
}

bool is_one_block(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::broadcast || kind == Kind::scan ||
         kind == Kind::exscan;
}

}  // namespace

// The root of a broadcast writes no output, since it has the result already. Rank 0 of an exscan
// writes none, since it has no result.
Cutting::Cutting(const Call& call, int rank, int size, std::size_t piece_bytes) {
  const auto ranks = static_cast<std::size_t>(size);
  const bool reads = has_input(call, rank);
  writes_ = has_output(call, rank) && !(call.kind == Kind::broadcast && rank == call.root) &&
            !(call.kind == Kind::exscan && rank == 0);
  type_ = reads ? call.in.type : call.out.type;
  one_block_ = is_one_block(call.kind);
  all_know_counts_ =
      call.kind != Kind::gather_v && call.kind != Kind::scatter_v && call.kind != Kind::all_to_all_v;
  if (reads) input_ = input_blocks(call, ranks);
  if (has_output(call, rank)) output_ = output_blocks(call, ranks);
  const std::size_t column = size_of(type_) * (one_block_ ? 1 : ranks);
  length_ = std::max<std::uint64_t>(1, piece_bytes / column);
  for (const Blocks* const blocks : {&input_, &output_}) {
    for (const std::uint64_t count : *blocks)
      own_pieces_ = std::max(own_pieces_, (count + length_ - 1) / length_);
  }
}

Part Cutting::part(const Blocks& blocks, std::uint64_t piece) const {
  const std::size_t element = size_of(type_);
  const std::uint64_t first = piece * length_;
  Part part;
  std::size_t begin = 0;  // where the block begins
  for (const std::uint64_t count : blocks) {
    const std::uint64_t here = count > first ? std::min(length_, count - first) : 0;
    part.counts.push_back(here);
    part.count += here;
    const std::size_t offset = begin + first * element;
    const bool continues =
        !part.ranges.empty() && part.ranges.back().offset + part.ranges.back().bytes == offset;
    if (here != 0 && continues) part.ranges.back().bytes += here * element;
    if (here != 0 && !continues) part.ranges.push_back({offset, here * element});
    begin += count * element;
  }
  return part;
}

}  // namespace tutti::staged
