#include "tests/prove/schedule_results.h"

namespace tutti::test {
namespace {

using Id = Expressions::Id;

class Results {
 public:
  Results(const ScheduleCase& test, std::vector<Memory>& memories, Expressions& expressions, bool rank_order)
      : test_(test), memories_(memories), expressions_(expressions), rank_order_(rank_order) {}

  std::string check_output(std::size_t rank);

 private:
  bool combines(Id id, std::uint64_t element, int ranks) const;

  const ScheduleCase& test_;
  std::vector<Memory>& memories_;
  Expressions& expressions_;
  const bool rank_order_;
};

// Whether `id` is the combination of element `element` of the first `ranks` ranks.
bool Results::combines(Id id, std::uint64_t element, int ranks) const {
  if (id <= Expressions::wrong) return false;
  std::uint64_t marks = 0;
  for (int rank = 0; rank < ranks; ++rank) marks += Expressions::mark(rank);
  const Expressions::Summary& summary = expressions_.summary(id);
  return summary.element == element && summary.leaves == static_cast<std::uint32_t>(ranks) &&
         summary.ranks == marks && summary.scaled == test_.base.premultiplied &&
         summary.divided == test_.base.average && (!rank_order_ || summary.first == 0);
}

std::string Results::check_output(std::size_t rank) {
  const int r = static_cast<int>(rank);
  const Problem problem = test_.at(r);
  Memory& memory = memories_[rank];
  const Range& out = memory.output();
  const int p = problem.size;
  Problem known_to_root = test_.at(problem.root);
  known_to_root.rank = r;
  const auto own_offset = own_block_offset(known_to_root);
  // For kinds whose output holds a block of every rank: the one that element i is in.
  int block = 0;
  std::uint64_t block_begin = 0;
  const auto block_count = [&](int b) {
    return problem.output_counts.empty() ? problem.count : problem.output_counts[static_cast<std::size_t>(b)];
  };
  // all_to_all: where the block for this rank starts in `from`'s input.
  const auto sent_before = [&](int from) {
    if (problem.output_counts.empty()) return problem.count * rank;
    std::uint64_t sum = 0;
    for (int to = 0; to < r; ++to) sum += test_.sent(from, to);
    return sum;
  };
  for (std::uint64_t i = 0; i < out.end - out.begin; ++i) {
    const Id id = memory[out.begin + i];
    bool right = false;
    switch (problem.kind) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce:
        right = combines(id, i, p);
        break;
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::reduce_scatter_v:
        right = combines(id, own_offset + i, p);
        break;
      case CollectiveKind::scan:
        right = combines(id, i, r + 1);
        break;
      case CollectiveKind::exscan:
        right = r == 0 ? id == memory.initial(out.begin + i) : combines(id, i, r);
        break;
      case CollectiveKind::broadcast:
        right = id == expressions_.leaf(problem.root, i);
        break;
      case CollectiveKind::scatter:
      case CollectiveKind::scatter_v:
        right = id == expressions_.leaf(problem.root, own_offset + i);
        break;
      default: {
        for (; i >= block_begin + block_count(block); ++block) block_begin += block_count(block);
        const bool exchanges =
            problem.kind == CollectiveKind::all_to_all || problem.kind == CollectiveKind::all_to_all_v;
        right = id == expressions_.leaf(block, i - block_begin + (exchanges ? sent_before(block) : 0));
      }
    }
    if (!right) return "rank " + std::to_string(r) + ": output element " + std::to_string(i) + " is wrong";
    if (problem.kind == CollectiveKind::all_reduce && id != memories_[0][memories_[0].output().begin + i]) {
      return "rank " + std::to_string(r) + ": element " + std::to_string(i) +
             " is computed otherwise than on rank 0";
    }
  }
  return memory.rest_unchanged() ? ""
                                 : "rank " + std::to_string(r) + ": memory beside the output has changed";
}

}  // namespace

std::string check_results(const ScheduleCase& test, std::vector<Memory>& memories, Expressions& expressions,
                          bool rank_order) {
  Results results(test, memories, expressions, rank_order);
  for (std::size_t rank = 0; rank < memories.size(); ++rank) {
    std::string error = results.check_output(rank);
    if (!error.empty()) return error;
  }
  return {};
}

}  // namespace tutti::test
