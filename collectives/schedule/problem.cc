#include "collectives/schedule/problem.h"

#include <algorithm>
#include <numeric>

namespace tutti {
namespace {

using Counts = std::span<const std::uint64_t>;

// This is larger than the last-level cache of most processors. A much smaller output is still in cache when
// it is used.
constexpr std::uint64_t cached_bytes = 64 << 20;

std::uint64_t sum(Counts counts) { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }

// Returns the count of `rank`. If `counts` has a single entry, that is this rank's own count.
std::uint64_t counted_at(Counts counts, std::size_t rank) {
  return counts.size() == 1 ? counts.front() : counts[rank];
}

}  // namespace

bool same_schedule(const Problem& a, const Problem& b) {
  return a.kind == b.kind && a.rank == b.rank && a.size == b.size && a.root == b.root && a.count == b.count &&
         a.element_size == b.element_size && a.commutative == b.commutative && a.average == b.average &&
         a.premultiplied == b.premultiplied && a.agrees == b.agrees && a.in_place == b.in_place &&
         a.registered == b.registered && a.window_bytes == b.window_bytes && a.topology == b.topology &&
         std::ranges::equal(a.input_counts, b.input_counts) &&
         std::ranges::equal(a.output_counts, b.output_counts);
}

bool passes_caches(const Problem& problem) {
  Problem at_root = problem;
  at_root.rank = problem.root;
  const std::uint64_t elements = input_count(at_root) + output_count(at_root);
  return elements >= cached_bytes / problem.element_size / static_cast<std::uint64_t>(problem.size);
}

std::uint64_t input_count(const Problem& problem) {
  const auto rank = static_cast<std::size_t>(problem.rank);
  const auto size = static_cast<std::uint64_t>(problem.size);
  const bool at_root = problem.rank == problem.root;
  switch (problem.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
    case CollectiveKind::scan:
    case CollectiveKind::exscan:
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      return problem.count;
    case CollectiveKind::broadcast:
      return at_root ? problem.count : 0;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return problem.count * size;
    case CollectiveKind::scatter:
      return at_root ? problem.count * size : 0;
    case CollectiveKind::all_gather_v:
    case CollectiveKind::gather_v:
      return counted_at(problem.output_counts, rank);
    case CollectiveKind::reduce_scatter_v:
    case CollectiveKind::all_to_all_v:
      return sum(problem.input_counts);
    case CollectiveKind::scatter_v:
      return at_root ? sum(problem.input_counts) : 0;
    case CollectiveKind::barrier:
    case CollectiveKind::send:
    case CollectiveKind::recv:
      return 0;
  }
  return 0;
}

std::uint64_t output_count(const Problem& problem) {
  const auto rank = static_cast<std::size_t>(problem.rank);
  const auto size = static_cast<std::uint64_t>(problem.size);
  const bool at_root = problem.rank == problem.root;
  switch (problem.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::scan:
    case CollectiveKind::exscan:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter:
      return problem.count;
    case CollectiveKind::reduce:
      return at_root ? problem.count : 0;
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return problem.count * size;
    case CollectiveKind::gather:
      return at_root ? problem.count * size : 0;
    case CollectiveKind::reduce_scatter_v:
    case CollectiveKind::scatter_v:
      return counted_at(problem.input_counts, rank);
    case CollectiveKind::all_gather_v:
    case CollectiveKind::all_to_all_v:
      return sum(problem.output_counts);
    case CollectiveKind::gather_v:
      return at_root ? sum(problem.output_counts) : 0;
    case CollectiveKind::barrier:
    case CollectiveKind::send:
    case CollectiveKind::recv:
      return 0;
  }
  return 0;
}

std::uint64_t own_block_offset(const Problem& problem) {
  const auto rank = static_cast<std::size_t>(problem.rank);
  switch (problem.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter:
      return problem.count * rank;
    case CollectiveKind::all_gather_v:
    case CollectiveKind::gather_v:
      return sum(problem.output_counts.first(rank));
    case CollectiveKind::reduce_scatter_v:
    case CollectiveKind::scatter_v:
      return sum(problem.input_counts.first(rank));
    default:
      return 0;
  }
}

}  // namespace tutti
