#include "tests/prove/schedule_checker.h"

namespace tutti::test {
namespace {

bool counts_inputs(CollectiveKind kind) {
  return kind == CollectiveKind::reduce_scatter_v || kind == CollectiveKind::scatter_v ||
         kind == CollectiveKind::all_to_all_v;
}

bool counts_outputs(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather_v || kind == CollectiveKind::gather_v ||
         kind == CollectiveKind::all_to_all_v;
}

}  // namespace

ScheduleCase::ScheduleCase(CollectiveKind kind, int size, std::uint64_t count, int root, bool in_place) {
  base.kind = kind;
  base.size = size;
  base.root = root;
  base.count = count;
  base.in_place = in_place;
  base.element_size = 4;
  if (!counts_inputs(kind) && !counts_outputs(kind)) return;
  base.count = 0;
  const bool pairs = kind == CollectiveKind::all_to_all_v;
  const auto p = static_cast<std::size_t>(size);
  counts_.resize(p * p);
  for (std::size_t from = 0; from < p; ++from) {
    for (std::size_t to = 0; to < p; ++to) {
      // In place, a rank's input and output must have the same length, so the counts are symmetric.
      const std::size_t salt = pairs ? (in_place ? (from + to) * 5 : from * 3 + to * 5) : to * 7;
      counts_[from * p + to] = (salt + 3) % (2 * count + 1);
    }
  }
  const bool root_only = kind == CollectiveKind::gather_v || kind == CollectiveKind::scatter_v;
  input_counts_.resize(p);
  output_counts_.resize(p);
  for (int rank = 0; rank < size; ++rank) {
    for (int other = 0; other < size; ++other) {
      const bool known = !root_only || rank == root || other == rank;
      if (!known) continue;
      const auto r = static_cast<std::size_t>(rank);
      if (counts_inputs(kind)) input_counts_[r].push_back(sent(pairs ? rank : 0, other));
      if (counts_outputs(kind)) output_counts_[r].push_back(sent(pairs ? other : 0, pairs ? rank : other));
    }
  }
}

Problem ScheduleCase::at(int rank) const {
  Problem problem = base;
  problem.rank = rank;
  const auto r = static_cast<std::size_t>(rank);
  if (!input_counts_.empty()) problem.input_counts = input_counts_[r];
  if (!output_counts_.empty()) problem.output_counts = output_counts_[r];
  return problem;
}

std::string ScheduleCase::describe() const {
  return std::string(to_string(base.kind)) + " p=" + std::to_string(base.size) +
         " count=" + std::to_string(base.count) +
         (counts_.empty() ? "" : " first counts " + std::to_string(counts_[0])) +
         " root=" + std::to_string(base.root) + (base.in_place ? " in place" : "") +
         (base.commutative ? "" : " non-commutative") + (base.average ? " average" : "") +
         (base.premultiplied ? " premultiplied" : "") + (base.registered ? " registered" : "") +
         (base.window_bytes == 0 ? ""
                                 : ", elements of " + std::to_string(base.element_size) + " B, windows of " +
                                       std::to_string(base.window_bytes) + " B");
}

}  // namespace tutti::test
