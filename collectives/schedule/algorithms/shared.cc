#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"
#include "collectives/schedule/algorithms/shared_rounds.h"

// These collectives are for ranks that share memory. Each rank has a window, and copies into it the data that
// others need. The others copy the data from there straight into place. All collectives but the barrier are
// pipelines of rounds (see Rounds). A round fills one or more areas of each window, called lanes. The rounds
// are so small that the windows stay in cache. So every input is read from main memory only once, and every
// output is written to main memory only once.
//
// The costs below are for p ranks and vectors of n elements. If the buffers have a block for each rank, n is
// the length of a block. A rank's copy of its own block from its input to its output is not counted. "Two
// signals deep" means that the last rank waits for a chain of two signals.
//
// All reductions combine in rank order, so operations need not commute. All ranks get the same
// bits. Either one rank computes a result and the others copy it, or all ranks compute it in the
// same order.
namespace tutti {
namespace {

// `Operands` are this rank's own operand, and the other ranks' operands in their windows.
class Operands {
 public:
  Operands(const Rounds& rounds, const Problem& problem) : rounds_(rounds), problem_(problem) {}

  // Combines the operands of ranks [0, last) into `out`. This rank's operand is `mine`; those of the other
  // ranks are in lane `lane` of `round`. Intermediate results are written to `spare`, which may equal `out`,
  // unless `out` holds the operand of a rank above 1.
  void combine(ScheduleBuilder& builder, std::uint64_t round, std::uint64_t lane, int last, const Slice& mine,
               const Slice& spare, const Slice& out) const {
    const auto operand = [&](int i) {
      return i == problem_.rank ? mine : rounds_.lane(i, round, lane, out.count);
    };
    if (last == 1) builder.copy(operand(0), out);
    Slice left = operand(0);
    for (int i = 1; i < last; ++i) {
      const Slice target = i == last - 1 ? out : spare;
      builder.reduce(left, operand(i), target);
      left = target;
    }
  }

 private:
  const Rounds& rounds_;
  const Problem& problem_;
};

// Every rank writes its whole vector to its window, and combines the vectors of all ranks. Cost: one signal
// deep, p n copied or combined.
//
// A rank takes its own operand from its input, since other ranks that read its lane may hold the
// lane's cache lines. In place, that is impossible on ranks above 1: they overwrite the input with
// an intermediate result before they need their operand. So these ranks take their operand from
// their lane.
void all_reduce_direct(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Rounds rounds(builder, problem, {.count = problem.count, .lanes = 1});
  const Operands operands(rounds, problem);
  const bool overwritten = problem.in_place && problem.rank > 1;
  rounds.run(1, everybody(problem), everybody(problem), [&](std::uint64_t t) {
    const Part in = rounds.part(t);
    if (in.count != 0) builder.copy(input(in.first, in.count), rounds.lane(problem.rank, t, 0, in.count));
    const Part done = rounds.part(t - 1);
    if (done.count == 0) return;
    const Slice out = output(done.first, done.count);
    const Slice mine = overwritten ? rounds.lane(problem.rank, t - 1, 0, done.count) : input(done);
    operands.combine(builder, t - 1, 0, problem.size, mine, out, out);
  });
}

// `Deal` divides a round into one slice per rank, aligned to cache lines.
class Deal {
 public:
  Deal(const Problem& problem, const Part& part)
      : part_(part), size_(Rounds::aligned(problem, (part.count + ranks(problem) - 1) / ranks(problem))) {}
  Part of(int rank) const {
    const std::uint64_t begin = std::min(part_.count, static_cast<std::uint64_t>(rank) * size_);
    return {part_.first + begin, std::min(size_, part_.count - begin)};
  }

 private:
  static std::uint64_t ranks(const Problem& problem) { return static_cast<std::uint64_t>(problem.size); }
  Part part_;
  std::uint64_t size_;
};

// This is a reduce-scatter of slices, then an all-gather of the results. Each rank combines one slice of
// every round, and the other ranks read the result from its window. Lane j of a rank's window holds that
// rank's operand for the slice of rank j. The rank's own lane holds its result. Cost: two signals deep, 3
// (p-1)/p n copied or combined. In an all_reduce, each rank also copies its result (n/p) from its window to
// its output, which is not counted.
//
// If `root` is not negative, only that rank gets the result. It combines its slice of each round straight
// into its output.
void slices(ScheduleBuilder& builder, const Problem& problem, int root) {
  const int r = problem.rank;
  const auto p = static_cast<std::uint64_t>(problem.size);
  const auto me = static_cast<std::uint64_t>(r);
  const bool collects = root < 0 || root == r;
  const Rounds rounds(builder, problem, {.count = problem.count, .lanes = p, .lane_share = p});
  const Operands operands(rounds, problem);
  const auto stage = [&](std::uint64_t t) {
    const Deal deal(problem, rounds.part(t));
    for (int j = 0; j < problem.size; ++j) {
      const Part piece = deal.of(j);
      if (j != r) builder.copy(input(piece), rounds.lane(r, t, static_cast<std::uint64_t>(j), piece.count));
    }
  };
  const auto combine = [&](std::uint64_t t) {
    const Part piece = Deal(problem, rounds.part(t)).of(r);
    if (piece.count == 0) return;
    const Slice result = rounds.lane(r, t, me, piece.count);
    const bool in_place = root == r;
    operands.combine(builder, t, me, problem.size, input(piece), result, in_place ? output(piece) : result);
    if (root < 0) builder.copy(result, output(piece));
  };
  const auto collect = [&](std::uint64_t t) {
    const Deal deal(problem, rounds.part(t));
    for (int j = 0; j < problem.size; ++j) {
      const Part piece = deal.of(j);
      if (j != r) builder.copy(rounds.lane(j, t, static_cast<std::uint64_t>(j), piece.count), output(piece));
    }
  };
  rounds.run(2, everybody(problem), everybody(problem), [&](std::uint64_t t) {
    if (collects) collect(t - 2);
    stage(t);
    combine(t - 1);
  });
}

void all_reduce_slices(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  slices(builder, problem, -1);
}

void reduce_slices(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  slices(builder, problem, problem.root);
}

// The root combines the vectors of all ranks. The other ranks wait only for room in their windows. Cost: one
// signal deep, (p-1) n combined at the root.
void reduce_direct(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const bool root = problem.rank == problem.root;
  const Rounds rounds(builder, problem, {.count = problem.count, .lanes = 1, .depth = 4});
  const Operands operands(rounds, problem);
  rounds.run(1, root ? everybody(problem) : nobody(), root ? nobody() : only(problem.root),
             [&](std::uint64_t t) {
               if (!root) {
                 const Part in = rounds.part(t);
                 builder.copy(input(in), rounds.lane(problem.rank, t, 0, in.count));
                 return;
               }
               const Part done = rounds.part(t - 1);
               if (done.count == 0) return;
               const Slice spare = rounds.lane(problem.rank, t - 1, 0, done.count);
               operands.combine(builder, t - 1, 0, problem.size, input(done), spare, output(done));
             });
}

// The root writes the vector to its window, and all other ranks read it there. Cost: n copied by each reader,
// and at most 2 n by the root, at the same time.
void broadcast(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const bool root = problem.rank == problem.root;
  const Rounds rounds(builder, problem, {.count = problem.count, .lanes = 1, .depth = 4});
  rounds.run(1, root ? nobody() : only(problem.root), root ? everybody(problem) : nobody(),
             [&](std::uint64_t t) {
               const Part part = rounds.part(root ? t : t - 1);
               if (root) {
                 builder.copy(input(part), rounds.lane(problem.rank, t, 0, part.count));
                 builder.copy(input(part), output(part));
               } else {
                 builder.copy(rounds.lane(problem.root, t - 1, 0, part.count), output(part));
               }
             });
}

// Returns the part of a block that a round covers.
Part within(const Blocks& blocks, int block, const Part& part) {
  const std::uint64_t begin = std::min(part.first, blocks.count(block));
  return {blocks.offset(block) + begin, std::min(part.count, blocks.count(block) - begin)};
}

Blocks blocks_of(const Problem& problem, std::span<const std::uint64_t> counts) {
  return counts.empty() ? Blocks::uniform(problem.count, problem.size) : Blocks::packed(counts);
}

RoundsOptions rounds_over(const Blocks& blocks, const Problem& problem, std::uint64_t lanes,
                          std::uint64_t depth) {
  const bool even = problem.input_counts.empty() && problem.output_counts.empty();
  return {.count = blocks.largest(), .lanes = lanes, .depth = depth, .repeatable = even};
}

// Every rank writes its block to its window, and all others read it there. Cost: p n copied.
void all_gather(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const int r = problem.rank;
  const Blocks blocks = blocks_of(problem, problem.output_counts);
  const Rounds rounds(builder, problem, rounds_over(blocks, problem, 1, 2));
  rounds.run(1, everybody(problem), everybody(problem), [&](std::uint64_t t) {
    const Part mine = within(blocks, r, rounds.part(t));
    const Slice from = input(mine.first - blocks.offset(r), mine.count);
    builder.copy(from, rounds.lane(r, t, 0, mine.count));
    builder.copy(from, output(mine));
    for (int j = 0; j < problem.size; ++j) {
      const Part theirs = within(blocks, j, rounds.part(t - 1));
      if (j != r) builder.copy(rounds.lane(j, t - 1, 0, theirs.count), output(theirs));
    }
  });
}

// Every rank writes its operands for the other ranks' blocks to its window, and combines its own block. Cost:
// 2 (p-1) n copied or combined.
void reduce_scatter(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const int r = problem.rank;
  const auto me = static_cast<std::uint64_t>(r);
  const Blocks blocks = blocks_of(problem, problem.input_counts);
  const Rounds rounds(builder, problem,
                      rounds_over(blocks, problem, static_cast<std::uint64_t>(problem.size), 2));
  const Operands operands(rounds, problem);
  rounds.run(1, everybody(problem), everybody(problem), [&](std::uint64_t t) {
    for (int j = 0; j < problem.size; ++j) {
      const Part theirs = within(blocks, j, rounds.part(t));
      if (j != r) builder.copy(input(theirs), rounds.lane(r, t, static_cast<std::uint64_t>(j), theirs.count));
    }
    const Part mine = within(blocks, r, rounds.part(t - 1));
    if (mine.count == 0) return;
    const Slice out = output(mine.first - blocks.offset(r), mine.count);
    operands.combine(builder, t - 1, me, problem.size, input(mine), rounds.lane(r, t - 1, me, mine.count),
                     out);
  });
}

// Every rank writes the blocks for the other ranks to its window, and reads its own blocks from their
// windows. Cost: 2 (p-1) n copied.
void all_to_all(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const int r = problem.rank;
  const Blocks blocks = blocks_of(problem, {});
  const Rounds rounds(builder, problem,
                      rounds_over(blocks, problem, static_cast<std::uint64_t>(problem.size), 2));
  rounds.run(1, everybody(problem), everybody(problem), [&](std::uint64_t t) {
    for (int j = 0; j < problem.size; ++j) {
      const Part given = within(blocks, j, rounds.part(t));
      const Slice target =
          j == r ? output(given) : rounds.lane(r, t, static_cast<std::uint64_t>(j), given.count);
      builder.copy(input(given), target);
    }
    for (int j = 0; j < problem.size; ++j) {
      const Part taken = within(blocks, j, rounds.part(t - 1));
      if (j != r) {
        builder.copy(rounds.lane(j, t - 1, static_cast<std::uint64_t>(r), taken.count), output(taken));
      }
    }
  });
}

// All ranks but the root write their blocks to their windows, and the root reads them there. Cost: (p-1) n
// copied at the root.
void gather(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const bool root = problem.rank == problem.root;
  const Blocks blocks = blocks_of(problem, {});
  const Rounds rounds(builder, problem, rounds_over(blocks, problem, 1, 4));
  rounds.run(1, root ? everybody(problem) : nobody(), root ? nobody() : only(problem.root),
             [&](std::uint64_t t) {
               const Part mine = rounds.part(t);
               if (!root) {
                 builder.copy(input(mine), rounds.lane(problem.rank, t, 0, mine.count));
                 return;
               }
               builder.copy(input(mine), output(within(blocks, problem.rank, mine)));
               for (int j = 0; j < problem.size; ++j) {
                 const Part theirs = within(blocks, j, rounds.part(t - 1));
                 if (j != problem.rank) builder.copy(rounds.lane(j, t - 1, 0, theirs.count), output(theirs));
               }
             });
}

// The root writes the blocks of all other ranks to its window, and each of them reads its block there. Cost:
// (p-1) n copied at the root.
void scatter(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const bool root = problem.rank == problem.root;
  const Blocks blocks = blocks_of(problem, {});
  const Rounds rounds(builder, problem,
                      rounds_over(blocks, problem, static_cast<std::uint64_t>(problem.size), 4));
  rounds.run(
      1, root ? nobody() : only(problem.root), root ? everybody(problem) : nobody(), [&](std::uint64_t t) {
        if (!root) {
          const Part mine = rounds.part(t - 1);
          builder.copy(rounds.lane(problem.root, t - 1, static_cast<std::uint64_t>(problem.rank), mine.count),
                       output(mine));
          return;
        }
        for (int j = 0; j < problem.size; ++j) {
          const Part theirs = within(blocks, j, rounds.part(t));
          const Slice target =
              j == problem.rank ? output(rounds.part(t))
                                : rounds.lane(problem.rank, t, static_cast<std::uint64_t>(j), theirs.count);
          builder.copy(input(theirs), target);
        }
      });
}

// Every rank writes its vector to its window, and combines the vectors of the ranks before it (in a scan,
// also its own). Cost: p n copied or combined at the last rank.
void scan(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const int last = problem.kind == CollectiveKind::scan ? problem.rank + 1 : problem.rank;
  const Rounds rounds(builder, problem, {.count = problem.count, .lanes = 1});
  const Operands operands(rounds, problem);
  rounds.run(1, below(problem), above(problem), [&](std::uint64_t t) {
    const Part in = rounds.part(t);
    builder.copy(input(in), rounds.lane(problem.rank, t, 0, in.count));
    const Part done = rounds.part(t - 1);
    if (done.count == 0 || last == 0) return;
    const Slice mine = rounds.lane(problem.rank, t - 1, 0, done.count);
    operands.combine(builder, t - 1, 0, last, mine, output(done), output(done));
  });
}

// Every rank signals, and awaits the signals of all others.
void barrier(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const std::uint32_t arrived = builder.signal();
  for (const int peer : everybody(problem)) builder.await(peer, arrived);
}

// Returns whether the algorithms of this file apply. Every area that they may use must have room
// for a cache line. The collective must not use registered memory instead.
bool windows(const Problem& problem) {
  return problem.window_bytes >= static_cast<std::uint64_t>(problem.size) * 4 * 64 && !problem.registered;
}

// Returns the cost of an algorithm that is `signals` deep and moves the bytes of a vector of n
// elements `passes` times through the processor.
double cost(const Problem& problem, const CostModel& model, double signals, double passes) {
  return signals * model.signal + Terms(problem, {}, model).gamma(passes * Terms(problem, {}, model).bytes());
}

template <int signals, int fixed, int per_rank>
double linear_cost(const Problem& problem, const Tuning&, const CostModel& model) {
  return cost(problem, model, signals, fixed + per_rank * problem.size);
}

double slices_cost(const Problem& problem, const Tuning&, const CostModel& model) {
  return cost(problem, model, 2, 3.0 * (problem.size - 1) / problem.size);
}

using Kind = CollectiveKind;
constexpr std::array family = {
    Algorithm{200, "shared_direct", Kind::all_reduce, true, 0, windows, linear_cost<1, 0, 1>,
              all_reduce_direct, true},
    Algorithm{201, "shared_slices", Kind::all_reduce, true, 0, windows, slices_cost, all_reduce_slices, true},
    Algorithm{202, "shared_direct", Kind::reduce, true, 0, windows, linear_cost<1, 0, 1>, reduce_direct,
              true},
    Algorithm{203, "shared_slices", Kind::reduce, true, 0, windows, slices_cost, reduce_slices, true},
    Algorithm{204, "shared", Kind::broadcast, true, 0, windows, linear_cost<1, 2, 0>, broadcast, true},
    Algorithm{205, "shared", Kind::all_gather, true, 0, windows, linear_cost<1, 0, 1>, all_gather, true},
    Algorithm{206, "shared", Kind::all_gather_v, true, 0, windows, linear_cost<1, 0, 1>, all_gather, true},
    Algorithm{207, "shared", Kind::reduce_scatter, true, 0, windows, linear_cost<1, 0, 2>, reduce_scatter,
              true},
    Algorithm{208, "shared", Kind::reduce_scatter_v, true, 0, windows, linear_cost<1, 0, 2>, reduce_scatter,
              true},
    Algorithm{209, "shared", Kind::all_to_all, true, 0, windows, linear_cost<1, 0, 2>, all_to_all, true},
    Algorithm{210, "shared", Kind::gather, true, 0, windows, linear_cost<1, 0, 1>, gather, true},
    Algorithm{211, "shared", Kind::scatter, true, 0, windows, linear_cost<1, 0, 1>, scatter, true},
    Algorithm{212, "shared", Kind::scan, true, 0, windows, linear_cost<1, 0, 1>, scan, true},
    Algorithm{213, "shared", Kind::exscan, true, 0, windows, linear_cost<1, 0, 1>, scan, true},
    Algorithm{214, "shared", Kind::barrier, true, 0, windows, linear_cost<1, 0, 0>, barrier, true},
};

}  // namespace

std::span<const Algorithm> shared_algorithms() { return family; }

}  // namespace tutti
