#include "tests/prove/schedule_results.h"

namespace tutti::test {
namespace {

using Id = Expressions::Id;

// `Results` checks the output of one rank.
class Results {
 public:
  Results(const ScheduleCase& test, Memory& memory, Expressions& expressions, bool rank_order, int rank)
      : test_(test),
        problem_(test.at(rank)),
        memory_(memory),
        expressions_(expressions),
        rank_order_(rank_order),
        rank_(rank),
        own_offset_(own_offset()) {}

  // `first` is the memory of rank 0. It is needed because every rank's all_reduce must have the
  // result of rank 0.
  std::string check_output(Memory& first);

 private:
  bool combines(Id id, std::uint64_t element, int ranks) const;
  bool is_right(Id id, std::uint64_t element) const;
  Id block_leaf(std::uint64_t element) const;
  std::uint64_t own_offset() const;
  std::uint64_t sent_before(int from) const;

  const ScheduleCase& test_;
  const Problem problem_;
  Memory& memory_;
  Expressions& expressions_;
  const bool rank_order_;
  const int rank_;
  const std::uint64_t own_offset_;
};

// Returns whether `id` is the combination of element `element` of the first `ranks` ranks.
bool Results::combines(Id id, std::uint64_t element, int ranks) const {
  if (id <= Expressions::wrong) return false;
  std::uint64_t marks = 0;
  for (int rank = 0; rank < ranks; ++rank) marks += Expressions::mark(rank);
  const Expressions::Summary& summary = expressions_.summary(id);
  return summary.element == element && summary.leaves == static_cast<std::uint32_t>(ranks) &&
         summary.ranks == marks && summary.scaled == test_.base.premultiplied &&
         summary.divided == test_.base.average && (!rank_order_ || summary.first == 0);
}

// Returns the offset of this rank's block in an input that holds a block for every rank. For some kinds, only
// the root knows the counts that determine this offset.
std::uint64_t Results::own_offset() const {
  Problem known_to_root = test_.at(problem_.root);
  known_to_root.rank = rank_;
  return own_block_offset(known_to_root);
}

// Returns the offset of the block for this rank in the input of rank `from`, for an all_to_all.
std::uint64_t Results::sent_before(int from) const {
  if (problem_.output_counts.empty()) return problem_.count * static_cast<std::uint64_t>(rank_);
  std::uint64_t sum = 0;
  for (int to = 0; to < rank_; ++to) sum += test_.sent(from, to);
  return sum;
}

// Returns the right value of an element of an output that holds a block of every rank.
Id Results::block_leaf(std::uint64_t element) const {
  const auto count = [&](int block) {
    return problem_.output_counts.empty() ? problem_.count
                                          : problem_.output_counts[static_cast<std::size_t>(block)];
  };
  int block = 0;
  for (; element >= count(block); ++block) element -= count(block);
  const bool exchanges =
      problem_.kind == CollectiveKind::all_to_all || problem_.kind == CollectiveKind::all_to_all_v;
  return expressions_.leaf(block, element + (exchanges ? sent_before(block) : 0));
}

// Returns whether `id` is the right value of element `element` of the output.
bool Results::is_right(Id id, std::uint64_t element) const {
  switch (problem_.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
      return combines(id, element, problem_.size);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce_scatter_v:
      return combines(id, own_offset_ + element, problem_.size);
    case CollectiveKind::scan:
      return combines(id, element, rank_ + 1);
    case CollectiveKind::exscan:
      return rank_ == 0 ? id == memory_.initial(memory_.output().begin + element)
                        : combines(id, element, rank_);
    case CollectiveKind::broadcast:
      return id == expressions_.leaf(problem_.root, element);
    case CollectiveKind::scatter:
    case CollectiveKind::scatter_v:
      return id == expressions_.leaf(problem_.root, own_offset_ + element);
    default:
      return id == block_leaf(element);
  }
}

std::string Results::check_output(Memory& first) {
  const Range& out = memory_.output();
  const std::string name = "rank " + std::to_string(rank_) + ": ";
  for (std::uint64_t i = 0; i < out.end - out.begin; ++i) {
    const Id id = memory_[out.begin + i];
    if (!is_right(id, i)) return name + "output element " + std::to_string(i) + " is wrong";
    if (problem_.kind == CollectiveKind::all_reduce && id != first[first.output().begin + i]) {
      return name + "element " + std::to_string(i) + " is computed otherwise than on rank 0";
    }
  }
  return memory_.rest_unchanged() ? "" : name + "memory beside the output has changed";
}

}  // namespace

std::string check_results(const ScheduleCase& test, std::vector<Memory>& memories, Expressions& expressions,
                          bool rank_order) {
  for (std::size_t rank = 0; rank < memories.size(); ++rank) {
    Results results(test, memories[rank], expressions, rank_order, static_cast<int>(rank));
    std::string error = results.check_output(memories.front());
    if (!error.empty()) return error;
  }
  return {};
}

}  // namespace tutti::test
