#include "tests/support/reference_arithmetic.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "core/reduce.h"

namespace tutti::test {

namespace {

using Kind = CollectiveKind;

bool only_root_has_input(Kind kind) {
  return kind == Kind::broadcast || kind == Kind::scatter || kind == Kind::scatter_v;
}

bool only_root_has_output(Kind kind) {
  return kind == Kind::reduce || kind == Kind::gather || kind == Kind::gather_v;
}

std::uint64_t before(std::span<const std::uint64_t> counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::uint64_t{0});
}

// Returns the count that must be equal in the calls of all ranks, or 0 if the kind has no such count.
std::uint64_t common_count(const Call& call) {
  switch (call.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
    case Kind::scan:
    case Kind::exscan:
    case Kind::all_gather:
    case Kind::gather:
      return call.in.count;
    case Kind::broadcast:
    case Kind::scatter:
    case Kind::reduce_scatter:
    case Kind::all_to_all:
      return call.out.count;
    default:
      return 0;
  }
}

DataType type_of(const Call& call) { return only_root_has_input(call.kind) ? call.out.type : call.in.type; }

// Combines elements [first, first + count) of the inputs of the first `ranks` ranks, in rank order. Writes
// the result to the output of `mine`.
void fold(const std::vector<RankInput>& all, int ranks, std::uint64_t first, std::uint64_t count,
          const Call& mine) {
  if (count == 0 || ranks == 0) return;
  const ReduceOp& op = *mine.op;
  const DataType type = mine.in.type;
  const std::size_t element = size_of(type);
  const Reducer reducer(type, op);
  std::vector<std::byte> sum(count * element), next(count * element);
  for (int rank = 0; rank < ranks; ++rank) {
    const RankInput& input = all[static_cast<std::size_t>(rank)];
    std::vector<std::byte>& to = rank == 0 ? sum : next;
    std::memcpy(to.data(), input.data.data() + first * element, to.size());
    if (rank != 0) reducer(sum.data(), next.data(), sum.data(), count);
  }
  if (op.kind() == ReduceOp::Kind::avg) divide(sum.data(), sum.data(), count, type, all.size());
  std::memcpy(mine.out.data, sum.data(), sum.size());
}

void copy(const std::vector<std::byte>& from, std::uint64_t first, std::uint64_t count, std::size_t element,
          std::byte*& to) {
  if (count != 0) std::memcpy(to, from.data() + first * element, count * element);
  to += count * element;
}

// Writes the output of a collective that only moves elements.
void move(const std::vector<RankInput>& all, int rank, const Call& mine) {
  const std::size_t element = size_of(type_of(mine));
  auto* to = static_cast<std::byte*>(mine.out.data);
  const std::uint64_t n = mine.out.count;
  const RankInput& root = all[static_cast<std::size_t>(mine.root)];
  switch (mine.kind) {
    case Kind::broadcast:
      return copy(root.data, 0, n, element, to);
    case Kind::scatter:
      return copy(root.data, static_cast<std::uint64_t>(rank) * n, n, element, to);
    case Kind::scatter_v:
      return copy(root.data, before(root.in_counts, rank), n, element, to);
    default:
      break;
  }
  for (const RankInput& from : all) {
    const std::uint64_t whole = from.data.size() / element;
    if (mine.kind == Kind::all_to_all) {
      copy(from.data, whole / all.size() * static_cast<std::uint64_t>(rank), whole / all.size(), element, to);
    } else if (mine.kind == Kind::all_to_all_v) {
      const std::uint64_t block = from.in_counts[static_cast<std::size_t>(rank)];
      copy(from.data, before(from.in_counts, rank), block, element, to);
    } else {
      copy(from.data, 0, whole, element, to);
    }
  }
}

}  // namespace

RankInput take_call(const Call& call) {
  RankInput mine{.call = call,
                 .in_counts = {call.in_counts.begin(), call.in_counts.end()},
                 .out_counts = {call.out_counts.begin(), call.out_counts.end()},
                 .data = {}};
  return mine;
}

void take_input(RankInput& mine, int rank) {
  const Call& call = mine.call;
  if (call.kind == Kind::barrier || (only_root_has_input(call.kind) && rank != call.root)) return;
  const auto* const from = static_cast<const std::byte*>(call.in.data);
  mine.data.assign(from, from + call.in.bytes());
  if (is_reduction(call.kind) && call.op->kind() == ReduceOp::Kind::premultiplied_sum)
    scale(mine.data.data(), mine.data.data(), call.in.count, call.in.type, call.op->factor());
}

bool match(const RankInput& a, const RankInput& b) {
  return a.call.kind == b.call.kind && a.call.root == b.call.root &&
         (a.call.kind == Kind::barrier || type_of(a.call) == type_of(b.call)) &&
         common_count(a.call) == common_count(b.call);
}

void write_output(const std::vector<RankInput>& all, int rank) {
  const Call& mine = all[static_cast<std::size_t>(rank)].call;
  const int size = static_cast<int>(all.size());
  if (only_root_has_output(mine.kind) && rank != mine.root) return;
  switch (mine.kind) {
    case Kind::barrier:
      return;
    case Kind::all_reduce:
    case Kind::reduce:
      return fold(all, size, 0, mine.in.count, mine);
    case Kind::reduce_scatter:
      return fold(all, size, static_cast<std::uint64_t>(rank) * mine.out.count, mine.out.count, mine);
    case Kind::reduce_scatter_v:
      return fold(all, size, before(all[static_cast<std::size_t>(rank)].in_counts, rank), mine.out.count,
                  mine);
    case Kind::scan:
      return fold(all, rank + 1, 0, mine.in.count, mine);
    case Kind::exscan:
      return fold(all, rank, 0, mine.in.count, mine);
    default:
      return move(all, rank, mine);
  }
}

}  // namespace tutti::test
