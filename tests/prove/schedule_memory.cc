#include "tests/prove/schedule_memory.h"

#include <span>

namespace tutti::test {
namespace {

std::size_t blocks_before(const Problem& problem, std::span<const std::uint64_t> counts) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(problem.rank); ++i) {
    sum += counts.empty() ? problem.count : counts[i];
  }
  return sum;
}

}  // namespace

bool overlap_badly(const Range& a, const Range& b) {
  const bool empty = a.begin == a.end || b.begin == b.end;
  const bool disjoint = empty || a.end <= b.begin || b.end <= a.begin;
  return !disjoint && (a.begin != b.begin || a.end != b.end);
}

namespace {

// Returns an error in the slices of a step, or an empty text. Each slice must lie in its buffer.
// An input slice of a step and its output slice must be equal, or must not overlap.
std::string check_slices(const Schedule& schedule, const Memory& memory, int rank) {
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    const auto left = memory.range(step.left);
    const auto right = memory.range(step.right);
    const auto out = memory.range(step.out);
    if (!left || !right || !out) return at(rank, i, "outside its buffer");
    const bool empty = step.out.count == 0;
    if (!empty && (overlap_badly(*left, *out) || overlap_badly(*right, *out)))
      return at(rank, i, "overlaps partly");
    const bool has_left = step.kind != StepKind::recv;
    const bool has_out = step.kind != StepKind::send;
    if (has_left && has_out && step.left.count != step.out.count) return at(rank, i, "sizes differ");
    if (step.kind == StepKind::reduce && step.right.count != step.out.count)
      return at(rank, i, "sizes differ");
  }
  return {};
}

// `Order` has a row of bits for every step. The row marks the steps that must complete before the
// step may start.
class Order {
 public:
  explicit Order(const Schedule& schedule)
      : words_((schedule.steps.size() + 63) / 64), bits_(schedule.steps.size() * words_) {
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
      for (const std::size_t next : schedule.successors_of(schedule.steps[i])) {
        for (std::size_t w = 0; w <= i / 64; ++w) bits_[next * words_ + w] |= bits_[i * words_ + w];
        bits_[next * words_ + i / 64] |= std::uint64_t{1} << (i % 64);
      }
    }
  }
  bool before(std::size_t a, std::size_t b) const {
    return (bits_[b * words_ + a / 64] >> (a % 64) & 1) != 0;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

// Visits the steps in order. For each cell, it remembers which step wrote the cell last, and which steps have
// read it since. Returns an error if a step conflicts with an earlier step but does not depend on it.
std::string check_races(const Schedule& schedule, const Memory& memory, int rank) {
  const Order order(schedule);
  struct Cell {
    std::int64_t writer = -1;
    std::vector<std::uint32_t> readers;
  };
  std::vector<Cell> cells(memory.size());
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    const auto ordered = [&](std::int64_t earlier) {
      return earlier < 0 || earlier == static_cast<std::int64_t>(i) ||
             order.before(static_cast<std::size_t>(earlier), i);
    };
    for (const Slice& slice : {step.left, step.right}) {
      const Range range = *memory.range(slice);
      for (std::size_t c = range.begin; c < range.end; ++c) {
        if (!ordered(cells[c].writer))
          return at(rank, i, "may read before step " + std::to_string(cells[c].writer));
        cells[c].readers.push_back(static_cast<std::uint32_t>(i));
      }
    }
    const Range range = *memory.range(step.out);
    for (std::size_t c = range.begin; c < range.end; ++c) {
      for (const std::uint32_t reader : cells[c].readers) {
        if (!ordered(reader))
          return at(rank, i, "may overwrite before step " + std::to_string(reader) + " has read");
      }
      if (!ordered(cells[c].writer))
        return at(rank, i, "may write before step " + std::to_string(cells[c].writer));
      cells[c] = {static_cast<std::int64_t>(i), {}};
    }
  }
  return {};
}

}  // namespace

Memory::Memory(const ScheduleCase& test, const Schedule& schedule, int rank, Expressions& expressions) {
  const Problem problem = test.at(rank);
  const std::size_t in = input_count(problem);
  const std::size_t out = output_count(problem);
  place(problem, in, out);
  const std::size_t user = std::max(ranges_[0].end, ranges_[1].end);
  ranges_[2] = {user, user + schedule.scratch_count};
  ranges_[3] = {ranges_[2].end, ranges_[2].end + schedule.window_count};
  cells_.assign(ranges_[3].end, Expressions::undefined);
  for (std::size_t i = 0; i < in; ++i) cells_[ranges_[0].begin + i] = expressions.leaf(rank, i);
  initial_.assign(cells_.begin(), cells_.begin() + static_cast<std::ptrdiff_t>(user));
}

std::optional<Range> Memory::range(const Slice& slice) const {
  const Range& buffer = ranges_[static_cast<std::size_t>(slice.buffer)];
  const std::size_t size = buffer.end - buffer.begin;
  if (slice.count > size || slice.offset > size - slice.count) return std::nullopt;
  return Range{buffer.begin + slice.offset, buffer.begin + slice.offset + slice.count};
}

bool Memory::rest_unchanged() const {
  for (std::size_t i = 0; i < initial_.size(); ++i) {
    const bool is_output = i >= ranges_[1].begin && i < ranges_[1].end;
    if (!is_output && cells_[i] != initial_[i]) return false;
  }
  return true;
}

void Memory::place(const Problem& problem, std::size_t in, std::size_t out) {
  const bool at_root = problem.rank == problem.root;
  std::size_t in_at = 0;
  std::size_t out_at = in;
  if (problem.in_place) {
    switch (problem.kind) {
      case CollectiveKind::gather:
      case CollectiveKind::gather_v:
        if (!at_root) break;
        [[fallthrough]];
      case CollectiveKind::all_gather:
      case CollectiveKind::all_gather_v:
        in_at = blocks_before(problem, problem.output_counts);
        out_at = 0;
        break;
      case CollectiveKind::scatter:
      case CollectiveKind::scatter_v:
        if (!at_root) break;
        [[fallthrough]];
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::reduce_scatter_v:
        out_at = blocks_before(problem, problem.input_counts);
        break;
      case CollectiveKind::reduce:
      case CollectiveKind::broadcast:
        if (at_root) out_at = 0;
        break;
      default:
        out_at = 0;
    }
  }
  ranges_[0] = {in_at, in_at + in};
  ranges_[1] = {out_at, out_at + out};
}

std::string at(int rank, std::size_t step, const std::string& what) {
  return "rank " + std::to_string(rank) + " step " + std::to_string(step) + ": " + what;
}

std::string fault(Expressions::Id value, std::size_t element) {
  return "element " + std::to_string(element) +
         (value == Expressions::wrong ? " combines what does not belong together" : " is undefined");
}

Expressions::Id value_of(const Step& step, Expressions::Id left, Expressions::Id right,
                         Expressions::Id message, Expressions& expressions) {
  switch (step.kind) {
    case StepKind::recv:
      return message;
    case StepKind::recv_reduce:
      return step.message_side == MessageSide::left ? expressions.combine(message, left)
                                                    : expressions.combine(left, message);
    case StepKind::copy:
      return left;
    case StepKind::reduce:
      return expressions.combine(left, right);
    case StepKind::scale:
      return expressions.scale(left);
    case StepKind::divide:
      return expressions.divide(left);
    case StepKind::send:
    case StepKind::signal:
    case StepKind::await:
      break;
  }
  return Expressions::wrong;
}

std::string check_structure(const Schedule& schedule, const Memory& memory, int rank) {
  const std::string error = check_slices(schedule, memory, rank);
  return error.empty() ? check_races(schedule, memory, rank) : error;
}

}  // namespace tutti::test
