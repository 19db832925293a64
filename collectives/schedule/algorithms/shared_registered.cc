#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"
#include "collectives/schedule/algorithms/shared_rounds.h"
#include "collectives/schedule/registered.h"

// These collectives use memory that all ranks have registered. Nothing is copied into windows: ranks read and
// write each other's buffers. Before such a collective, the ranks vote (see SharedExecutor). The vote tells
// every rank that all others have called the collective, so all inputs are complete. At the end, each rank
// signals that it no longer uses the others' buffers.
namespace tutti {
namespace {

// Returns the number of elements of a piece. A piece is so small that it stays in the first or second level
// of cache from one step to the next. It also fits the window, which holds the intermediate results if there
// are more than two ranks.
std::uint64_t piece_count(const Problem& problem) {
  return std::min<std::uint64_t>(32 * 1024, problem.window_bytes) / problem.element_size;
}

Slice of(int owner, Slice slice) {
  slice.owner = owner;
  return slice;
}

// Emits `body(first, count)` for each piece of `part`. The whole pieces share one sequence of steps, which is
// repeated.
template <class Body>
void in_pieces(ScheduleBuilder& builder, const Problem& problem, const Part& part, Body body) {
  const std::uint64_t piece = piece_count(problem);
  const std::uint64_t whole = part.count / piece;
  if (whole != 0) {
    builder.begin_repeat(whole, piece);
    body(part.first, piece);
    builder.end_repeat();
  }
  if (part.count % piece != 0) body(part.first + whole * piece, part.count % piece);
}

void everybody_done(ScheduleBuilder& builder, const Problem& problem) {
  const std::uint32_t done = builder.signal();
  for (const int peer : everybody(problem)) builder.await(peer, done);
}

// Combines every rank's input at `first` into `out`, in rank order. Only the last step writes to `out`, so
// `out` may be one of the inputs.
void combine(ScheduleBuilder& builder, const Problem& problem, std::uint64_t first, const Slice& spare,
             const Slice& out) {
  Slice left = of(0, input(first, out.count));
  for (int i = 1; i < problem.size; ++i) {
    const Slice target = i == problem.size - 1 ? out : spare;
    builder.reduce(left, of(i, input(first, out.count)), target);
    left = target;
  }
}

Slice spare_for(ScheduleBuilder& builder, const Problem& problem) {
  return problem.size > 2 ? builder.window(problem.rank, 0, piece_count(problem)) : Slice{};
}

// Every rank combines one slice of all inputs and writes the result to all outputs. Cost: each rank reads n/p
// elements of each of p inputs, and writes n/p elements to each of p outputs. All ranks together read and
// write no more than a single process that does the whole reduction.
void all_reduce(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Blocks blocks = Blocks::balanced(problem.count, problem.size);
  const Slice spare = spare_for(builder, problem);
  const Part mine{blocks.offset(problem.rank), blocks.count(problem.rank)};
  in_pieces(builder, problem, mine, [&](std::uint64_t first, std::uint64_t count) {
    combine(builder, problem, first, sub_slice(spare, 0, count), of(everyone, output(first, count)));
  });
  everybody_done(builder, problem);
}

// Reduces like `all_reduce`, but only the root has an output.
void reduce(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Blocks blocks = Blocks::balanced(problem.count, problem.size);
  const Slice spare = spare_for(builder, problem);
  const Part mine{blocks.offset(problem.rank), blocks.count(problem.rank)};
  in_pieces(builder, problem, mine, [&](std::uint64_t first, std::uint64_t count) {
    combine(builder, problem, first, sub_slice(spare, 0, count), of(problem.root, output(first, count)));
  });
  everybody_done(builder, problem);
}

void reduce_scatter(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Slice spare = spare_for(builder, problem);
  const std::uint64_t block = static_cast<std::uint64_t>(problem.rank) * problem.count;
  in_pieces(builder, problem, {0, problem.count}, [&](std::uint64_t first, std::uint64_t count) {
    combine(builder, problem, block + first, sub_slice(spare, 0, count), output(first, count));
  });
  everybody_done(builder, problem);
}

void all_gather(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Blocks blocks = Blocks::uniform(problem.count, problem.size);
  builder.copy(input(0, problem.count), blocks.in_output(problem.rank));
  for (const int peer : everybody(problem)) {
    builder.copy(of(peer, input(0, problem.count)), blocks.in_output(peer));
  }
  everybody_done(builder, problem);
}

void broadcast(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Slice all = input(0, problem.count);
  builder.copy(problem.rank == problem.root ? all : of(problem.root, all), output(0, problem.count));
  everybody_done(builder, problem);
}

void gather(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Blocks blocks = Blocks::uniform(problem.count, problem.size);
  if (problem.rank == problem.root) {
    builder.copy(input(0, problem.count), blocks.in_output(problem.rank));
    for (const int peer : everybody(problem)) {
      builder.copy(of(peer, input(0, problem.count)), blocks.in_output(peer));
    }
  }
  everybody_done(builder, problem);
}

void scatter(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Slice mine = Blocks::uniform(problem.count, problem.size).in_input(problem.rank);
  builder.copy(problem.rank == problem.root ? mine : of(problem.root, mine), output(0, problem.count));
  everybody_done(builder, problem);
}

bool registered(const Problem& problem) { return problem.registered && has_registered_form(problem); }

double cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return 2 * model.signal + terms.gamma(2 * terms.bytes());
}

using Kind = CollectiveKind;
constexpr std::array family = {
    Algorithm{220, "registered", Kind::all_reduce, true, 0, registered, cost, all_reduce, true},
    Algorithm{221, "registered", Kind::reduce, true, 0, registered, cost, reduce, true},
    Algorithm{222, "registered", Kind::broadcast, true, 0, registered, cost, broadcast, true},
    Algorithm{223, "registered", Kind::all_gather, true, 0, registered, cost, all_gather, true},
    Algorithm{224, "registered", Kind::reduce_scatter, true, 0, registered, cost, reduce_scatter, true},
    Algorithm{225, "registered", Kind::gather, true, 0, registered, cost, gather, true},
    Algorithm{226, "registered", Kind::scatter, true, 0, registered, cost, scatter, true},
};

}  // namespace

std::span<const Algorithm> registered_algorithms() { return family; }

}  // namespace tutti
