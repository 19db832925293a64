#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/circulant.h"
#include "collectives/schedule/algorithms/composition.h"
#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"

// These algorithms are for several hosts, of which at least one has several ranks. Each algorithm has an
// exchange between hosts. The ranks of a host also exchange data among themselves: before that exchange,
// after it, or both. See Träff, Hunold, "Decomposing MPI collectives for exploiting multi-lane communication"
// (2020); Karonis et al., "Exploiting hierarchy in parallel computer networks to optimize collective
// operation performance" (2000). Hosts may have different numbers of ranks, in any placement.
namespace tutti {
namespace {

// Returns the name of the algorithm for a part: a tree if the data is not segmented, a chain for the segments
// of a pipeline. In a chain, every rank sends each byte at most once.
std::string_view tree_or_chain(const Tuning& tuning) {
  return tuning.segment_bytes == 0 ? "binomial" : "chain";
}

// --- all_reduce ---

// The algorithm has three stages. First, the ranks of each host run a reduce-scatter. Next, the ranks with
// the same place on all hosts run an all-reduce. Last, the ranks of each host run an all-gather. The vector
// is cut into segments, which may be in different stages at the same time. Cost for H hosts of q ranks and a
// vector of n bytes: 2 ceil(log2 q) + 2 ceil(log2 H) rounds; 2 (H-1)/H n bytes out of each host.
void lanes(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const Position at(problem);
  const int hosts = at.topology.hosts();
  const int width = at.topology.fewest();
  std::vector<int> lane;
  for (int h = 0; h < hosts && at.place < width; ++h)
    lane.push_back(at.topology.members(h)[static_cast<std::size_t>(at.place)]);
  const Slice all = output(0, problem.count);
  const Segments segments(problem, tuning, problem.count,
                          4 * static_cast<std::uint64_t>(tree_depth(problem.size, 2)));
  for (std::uint64_t i = 0; i < segments.count(all); ++i) {
    const Slice whole = segments.at(all, i);
    const Blocks even = Blocks::balanced(whole.count, width);
    std::vector<std::uint64_t> counts(at.local.size());
    for (int j = 0; j < width; ++j) counts[static_cast<std::size_t>(j)] = even.count(j);
    const Blocks blocks = Blocks::packed(counts);
    const Problem local = part_of(problem, problem.kind, at.place, at.local_size(), 0, whole.count);
    {
      const ScheduleBuilder::Part part(builder, at.local, input(whole.offset, whole.count), whole);
      circulant_reduce_scatter(builder, local, blocks, output(0, whole.count), blocks.in_output(at.place));
    }
    if (at.place < width) {
      const Slice mine = blocks.of(whole, at.place);
      Problem between = part_of(problem, problem.kind, at.host, hosts, 0, mine.count);
      between.in_place = true;
      const ScheduleBuilder::Part part(builder, lane, mine, mine);
      emit_part(builder, "circulant", between, {});
    }
    const ScheduleBuilder::Part part(builder, at.local, whole, whole);
    circulant_all_gather(builder, local, blocks, output(0, whole.count));
  }
}

// Combines the vectors of a host at its leader. The leaders combine their sums, and each sends the result to
// the ranks of its host. Cost with radix k, for H hosts of q ranks: 2 ceil(log_k q) + ceil(log_k H) rounds.
void leaders_all_reduce(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const Position at(problem);
  const std::uint64_t n = problem.count;
  const auto local = [&](CollectiveKind kind) {
    return part_of(problem, kind, at.place, at.local_size(), 0, n);
  };
  const Slice all = output(0, n);
  {
    const ScheduleBuilder::Part part(builder, at.local, input(0, n), all);
    emit_part(builder, "binomial", local(CollectiveKind::reduce), tuning);
  }
  if (at.place == 0) {
    Problem between = part_of(problem, problem.kind, at.host, at.topology.hosts(), 0, n);
    between.in_place = true;
    const ScheduleBuilder::Part part(builder, at.leaders, all, all);
    emit_part(builder, "recursive_doubling", between, tuning);
  }
  const ScheduleBuilder::Part part(builder, at.local, all, all);
  emit_part(builder, "binomial", local(CollectiveKind::broadcast), tuning);
}

// --- broadcast, reduce ---

// Sends the vector from the root to the leaders of the other hosts, and from each leader to the ranks of its
// host. The vector is cut into segments, which form a pipeline.
void leaders_broadcast(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const Position at(problem, true);
  const Slice all = output(0, problem.count);
  const Segments segments(problem, tuning, problem.count, 4);
  for (std::uint64_t i = 0; i < segments.count(all); ++i) {
    const Slice whole = segments.at(all, i);
    if (problem.rank == at.leader()) {
      const Problem between = part_of(problem, problem.kind, at.host, at.topology.hosts(),
                                      at.topology.host_of(problem.root), whole.count);
      const Slice source = problem.rank == problem.root ? input(whole.offset, whole.count) : whole;
      const ScheduleBuilder::Part part(builder, at.leaders, source, whole);
      emit_part(builder, tree_or_chain(tuning), between, uncut(tuning));
    }
    const Problem local =
        part_of(problem, problem.kind, at.place, at.local_size(), at.leader_place(), whole.count);
    const ScheduleBuilder::Part part(builder, at.local, whole, whole);
    emit_part(builder, tree_or_chain(tuning), local, uncut(tuning));
  }
}

// Reduces each host's vectors at its leader, and the leaders' results at the root. The vectors are cut into
// segments, which form a pipeline.
void leaders_reduce(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const Position at(problem, true);
  const bool is_root = problem.rank == problem.root;
  const bool leads = problem.rank == at.leader();
  const Slice own = input(0, problem.count);
  const Segments segments(problem, tuning, problem.count, 6);
  Slots sums(builder, leads && !is_root ? segments.unit() : 0, 4);
  for (std::uint64_t i = 0; i < segments.count(own); ++i) {
    const Slice mine = segments.at(own, i);
    Slice sum{};  // empty on ranks that hold no sum
    if (is_root) sum = output(mine.offset, mine.count);
    if (leads && !is_root) sum = sums.next(mine.count);
    {
      const Problem local =
          part_of(problem, problem.kind, at.place, at.local_size(), at.leader_place(), mine.count);
      const ScheduleBuilder::Part part(builder, at.local, mine, sum);
      emit_part(builder, tree_or_chain(tuning), local, uncut(tuning));
    }
    if (!leads) continue;
    Problem between = part_of(problem, problem.kind, at.host, at.topology.hosts(),
                              at.topology.host_of(problem.root), mine.count);
    between.in_place = is_root;
    const ScheduleBuilder::Part part(builder, at.leaders, sum, sum);
    emit_part(builder, tree_or_chain(tuning), between, uncut(tuning));
  }
}

// --- all_gather, reduce_scatter ---

// Returns one block for each host, in the order of hosts. A host's block holds the blocks of all its ranks.
Blocks host_blocks(const Problem& problem) {
  std::vector<std::uint64_t> counts;
  for (int h = 0; h < problem.topology->hosts(); ++h)
    counts.push_back(problem.topology->members(h).size() * problem.count);
  return Blocks::packed(counts);
}

// Returns whether a list of all ranks, host by host, is in the order of ranks.
bool in_rank_order(const Topology& topology) {
  int rank = 0;
  for (int h = 0; h < topology.hosts(); ++h) {
    for (const int member : topology.members(h)) {
      if (member != rank++) return false;
    }
  }
  return true;
}

// Calls `function` for every rank's block, with the block's slice of `by_host` and its slice of `by_rank`.
// `by_host` holds the blocks host by host, `by_rank` in rank order.
template <class Function>
void for_blocks(const Problem& problem, const Slice& by_host, const Slice& by_rank, Function function) {
  const std::uint64_t n = problem.count;
  std::uint64_t offset = 0;
  for (int h = 0; h < problem.topology->hosts(); ++h) {
    for (const int member : problem.topology->members(h)) {
      function(sub_slice(by_host, offset, n), sub_slice(by_rank, static_cast<std::uint64_t>(member) * n, n));
      offset += n;
    }
  }
}

// Sends a host's blocks to its leader. The leaders exchange these blocks, and each sends all blocks to the
// ranks of its host.
void leaders_all_gather(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const Position at(problem);
  const Blocks blocks = host_blocks(problem);
  const Slice all = output(0, blocks.total());
  const bool ordered = in_rank_order(at.topology);
  const Slice held = ordered ? all : builder.scratch(blocks.total());
  {
    const ScheduleBuilder::Part part(builder, at.local, input(0, problem.count), blocks.of(held, at.host));
    emit_part(builder, "binomial",
              part_of(problem, CollectiveKind::gather, at.place, at.local_size(), 0, problem.count), tuning);
  }
  if (at.place == 0) {
    const Problem between = part_of(problem, problem.kind, at.host, at.topology.hosts(), 0, 0);
    const ScheduleBuilder::Part part(builder, at.leaders, held, held);
    circulant_all_gather(builder, between, blocks, output(0, blocks.total()));
  }
  {
    const ScheduleBuilder::Part part(builder, at.local, held, held);
    emit_part(builder, tree_or_chain(tuning),
              part_of(problem, CollectiveKind::broadcast, at.place, at.local_size(), 0, blocks.total()),
              tuning);
  }
  if (ordered) return;
  for_blocks(problem, held, all, [&](const Slice& from, const Slice& to) { builder.copy(from, to); });
}

// Combines a host's vectors at its leader. The leaders exchange and combine the blocks of each host, and send
// each rank its block. This is the reverse of `leaders_all_gather`.
void leaders_reduce_scatter(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const Position at(problem);
  const Blocks blocks = host_blocks(problem);
  const std::uint64_t total = blocks.total();
  const bool leads = at.place == 0;
  Slice held = builder.scratch(leads ? total : 0);
  {
    const ScheduleBuilder::Part part(builder, at.local, input(0, total), held);
    emit_part(builder, tree_or_chain(tuning),
              part_of(problem, CollectiveKind::reduce, at.place, at.local_size(), 0, total), tuning);
  }
  if (leads && !in_rank_order(at.topology)) {
    const Slice by_rank = held;
    held = builder.scratch(total);
    for_blocks(problem, held, by_rank, [&](const Slice& to, const Slice& from) { builder.copy(from, to); });
  }
  Slice due{};
  if (leads) {
    due = blocks.of(held, at.host);
    const Problem between = part_of(problem, problem.kind, at.host, at.topology.hosts(), 0, 0);
    const ScheduleBuilder::Part part(builder, at.leaders, held, held);
    circulant_reduce_scatter(builder, between, blocks, output(0, total), blocks.in_output(at.host));
  }
  const ScheduleBuilder::Part part(builder, at.local, due, output(0, problem.count));
  emit_part(builder, "binomial",
            part_of(problem, CollectiveKind::scatter, at.place, at.local_size(), 0, problem.count), tuning);
}

// --- barrier ---

// Sends empty messages up a tree inside each host, then between the leaders, then down the trees.
void leaders_barrier(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const Position at(problem);
  const TreeNode node = range_tree(at.place, at.local_size(), 0, radix_of(tuning));
  {
    const ScheduleBuilder::Part part(builder, at.local, {}, {});
    for (const auto& child : node.children) builder.recv(child.rank, {});
    builder.fence();
    if (node.parent >= 0) {
      builder.send(node.parent, {});
      builder.recv(node.parent, {});
      builder.fence();
    }
  }
  if (at.place == 0) {
    const ScheduleBuilder::Part part(builder, at.leaders, {}, {});
    emit_part(builder, "dissemination", part_of(problem, problem.kind, at.host, at.topology.hosts(), 0, 0),
              tuning);
  }
  const ScheduleBuilder::Part part(builder, at.local, {}, {});
  for (const auto& child : node.children) builder.send(child.rank, {});
}

// --- costs ---

// Returns the number of elements of a segment, and the number of segments.
std::pair<double, double> cut(const Problem& problem, const Tuning& tuning, std::uint64_t passes) {
  const Segments segments(problem, tuning, problem.count, passes);
  const auto number = std::max<std::uint64_t>(segments.count(output(0, problem.count)), 1);
  return {static_cast<double>(std::min(segments.unit(), problem.count)), static_cast<double>(number)};
}

double lanes_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const PartCosts parts(problem, tuning, model);
  const int width = problem.topology->fewest();
  const auto [n, segments] =
      cut(problem, tuning, 4 * static_cast<std::uint64_t>(tree_depth(problem.size, 2)));
  const double block = n / parts.local_size();
  // The first stages of all segments are ready at the start, so all of them run before any second stage.
  // After that, little overlaps (as the simulator shows).
  return segments * (parts.within(CollectiveKind::reduce_scatter, "circulant", block) +
                     parts.between(CollectiveKind::all_reduce, "circulant", n / width, width) +
                     parts.within(CollectiveKind::all_gather, "circulant", block));
}

double leaders_all_reduce_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const PartCosts parts(problem, tuning, model);
  const auto n = static_cast<double>(problem.count);
  return parts.within(CollectiveKind::reduce, "binomial", n) +
         parts.between(CollectiveKind::all_reduce, "recursive_doubling", n, 1) +
         parts.within(CollectiveKind::broadcast, "binomial", n);
}

// Returns the seconds that each further segment takes in a chain of `ranks` ranks, if the first one takes
// `seconds`. A rank passes a segment on while the next one arrives.
double per_hop(double seconds, int ranks) { return seconds / std::max(1, ranks - 1); }

double leaders_rooted_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const PartCosts parts(problem, tuning, model);
  const auto [n, segments] = cut(problem, tuning, problem.kind == CollectiveKind::reduce ? 6 : 4);
  const auto name = tree_or_chain(tuning);
  const double within = parts.within(problem.kind, name, n);
  const double between = parts.between(problem.kind, name, n, 1);
  const double hop = std::max(per_hop(within, parts.local_size()), per_hop(between, parts.hosts()));
  return within + between + (segments - 1) * hop;
}

// Returns the cost of three parts. Each rank sends its block to its leader, the leaders exchange
// blocks, and each leader sends all blocks to its ranks. A reduce-scatter has these parts in
// reverse.
double leaders_blocks_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const PartCosts parts(problem, tuning, model);
  const bool gathers = problem.kind == CollectiveKind::all_gather;
  const CollectiveKind single = gathers ? CollectiveKind::gather : CollectiveKind::scatter;
  const CollectiveKind whole = gathers ? CollectiveKind::broadcast : CollectiveKind::reduce;
  const auto n = static_cast<double>(problem.count);
  double all = 0;
  if (tuning.segment_bytes == 0) {
    all = parts.within(whole, "binomial", n * problem.size);
  } else {
    Problem vector = problem;
    vector.count *= static_cast<std::uint64_t>(problem.size);
    const auto [segment, segments] = cut(vector, tuning, 2);
    const double first = parts.within(whole, "chain", segment);
    all = first + (segments - 1) * per_hop(first, parts.local_size());
  }
  return parts.within(single, "binomial", n) +
         parts.between(problem.kind, "circulant", n * parts.local_size(), 1) + all;
}

double leaders_barrier_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const PartCosts parts(problem, tuning, model);
  return 2 * parts.within(CollectiveKind::broadcast, "binomial", 0) +
         parts.between(CollectiveKind::barrier, "dissemination", 0, 1);
}

constexpr unsigned radix_and_segment = radix_knob | segment_knob;
constexpr std::array family = {
    Algorithm{160, "two_level", CollectiveKind::all_reduce, false, segment_knob, several_of_both, lanes_cost,
              lanes},
    Algorithm{161, "leaders", CollectiveKind::all_reduce, false, radix_knob, several_of_both,
              leaders_all_reduce_cost, leaders_all_reduce},
    Algorithm{162, "leaders", CollectiveKind::broadcast, false, radix_and_segment, several_of_both,
              leaders_rooted_cost, leaders_broadcast},
    Algorithm{163, "leaders", CollectiveKind::reduce, false, radix_and_segment, several_of_both,
              leaders_rooted_cost, leaders_reduce},
    Algorithm{164, "leaders", CollectiveKind::all_gather, false, radix_and_segment, several_of_both,
              leaders_blocks_cost, leaders_all_gather},
    Algorithm{165, "leaders", CollectiveKind::reduce_scatter, false, radix_and_segment, several_of_both,
              leaders_blocks_cost, leaders_reduce_scatter},
    Algorithm{166, "leaders", CollectiveKind::barrier, false, radix_knob, several_of_both,
              leaders_barrier_cost, leaders_barrier},
};

}  // namespace

std::span<const Algorithm> two_level_algorithms() { return family; }

}  // namespace tutti
