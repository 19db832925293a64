#include <array>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/algorithms/circulant.h"
#include "collectives/schedule/algorithms/costs.h"
#include "collectives/schedule/algorithms/families.h"

namespace tutti {
namespace {

// `Groups` divides p ranks into contiguous groups. The number of groups is the largest power of the radix k
// that does not exceed p, so a group has at most k ranks. The first rank of each group is its leader. The
// leader combines the inputs of its group before the leaders exchange values. Afterwards it sends the result
// to its group.
struct Groups {
  Groups(int size, int radix) {
    while (count * radix <= size) count *= radix;
    least = size / count;
    larger = size % count;
  }
  int leader(int group) const { return group * least + std::min(group, larger); }
  int group_of(int rank) const {
    const int border = larger * (least + 1);
    return rank < border ? rank / (least + 1) : larger + (rank - border) / least;
  }
  // Returns whether each block of `span` consecutive groups lies within one host. (Different blocks may be on
  // different hosts.)
  bool within_hosts(int span, const Topology* topology) const {
    if (topology == nullptr) return true;
    if (!topology->regular()) return false;
    for (int first = 0; first < count; first += span) {
      if (topology->host_of(leader(first)) != topology->host_of(leader(first + span) - 1)) return false;
    }
    return true;
  }
  int count = 1;   // a power of the radix
  int least = 1;   // ranks in each of the smaller groups
  int larger = 0;  // groups that have one rank more
};

// Emits the steps of a rank that is not a leader: the leader of its group combines its input.
void follow(ScheduleBuilder& builder, int leader, const Slice& all_input, const Slice& all_output) {
  builder.send(leader, all_input);
  builder.recv(leader, all_output);
}

// Emits one exchange among k leaders, of which this rank is number j. This rank's value is `mine`, and each
// leader computes ((v0 v1) v2) ... into its `result`.
void combine_all(ScheduleBuilder& builder, std::span<const int> leaders, int j, const Slice& mine,
                 const Slice& result) {
  const int k = static_cast<int>(leaders.size());
  for (int i = 1; i < k; ++i) builder.send(leaders[static_cast<std::size_t>((j + i) % k)], mine);
  for (int i = 0; i < k; ++i) {
    const int peer = leaders[static_cast<std::size_t>(i)];
    if (i == j) {
      if (j >= 2) builder.reduce(result, mine, result);
    } else if (i == 0 && j == 1) {
      builder.recv_reduce(peer, mine, result, MessageSide::left);
    } else if (i == 0) {
      builder.recv(peer, result);
    } else {
      builder.recv_reduce(peer, i == 1 && j == 0 ? mine : result, result, MessageSide::right);
    }
  }
}

// This is recursive doubling, or recursive multiplying if the radix k is larger than 2. See Thakur,
// Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH" (2005);
// Ruefenacht, Bull, Booth, "Generalisation of recursive doubling for AllReduce" (2017). In round i,
// leaders whose numbers differ only in digit i exchange their values. Cost for p ranks and vectors of
// n bytes: log_k p rounds of k-1 messages of n bytes; if p is not a power of k, one more round before
// and one after.
void recursive_doubling(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const int k = radix_of(tuning);
  const Groups groups(problem.size, k);
  const int group = groups.group_of(problem.rank);
  const int leader = groups.leader(group);
  const Slice all_input = input(0, problem.count);
  const Slice all_output = output(0, problem.count);
  if (problem.rank != leader) return follow(builder, leader, all_input, all_output);
  const int last = groups.leader(group + 1);  // one past the group's last rank
  int stages = last - leader > 1 ? 1 : 0;
  for (int stride = 1; stride < groups.count; stride *= k) ++stages;
  Alternation buffers(builder, problem, stages);
  for (int member = leader + 1; member < last; ++member) {
    const Slice& local = member == leader + 1 ? buffers.current() : buffers.next();
    builder.recv_reduce(member, local, buffers.next(), MessageSide::right);
  }
  if (last - leader > 1) buffers.advance();
  std::vector<int> leaders(static_cast<std::size_t>(k));
  for (int stride = 1; stride < groups.count; stride *= k) {
    const int j = group / stride % k;
    for (int i = 0; i < k; ++i)
      leaders[static_cast<std::size_t>(i)] = groups.leader(group + (i - j) * stride);
    combine_all(builder, leaders, j, buffers.current(), buffers.next());
    buffers.advance();
  }
  for (int member = leader + 1; member < last; ++member) builder.send(member, all_output);
}

double recursive_doubling_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  const int k = radix_of(tuning);
  const Groups groups(problem.size, k);
  const int members = groups.least - 1 + (groups.larger > 0 ? 1 : 0);
  const Path in_group = terms.tree(2, 2, groups.within_hosts(1, problem.topology));
  double seconds =
      terms.reducing_burst(members, terms.bytes(), in_group) + terms.burst(members, terms.bytes(), in_group);
  for (int stride = 1; stride < groups.count; stride *= k) {
    const bool within = groups.within_hosts(stride * k, problem.topology);
    seconds += terms.reducing_burst(k - 1, terms.bytes(), terms.exchange(stride, within));
  }
  return seconds;
}

// A `Halving` is a round of recursive halving: this leader keeps the combination of one half, and gives the
// other half away.
struct Halving {
  int partner;
  Slice kept, given;  // parts of the output
};

// Emits the rounds in which the leader of `group` combines ever smaller halves of the output. The first round
// reads `source`. The nearest partners come first.
std::vector<Halving> halve(ScheduleBuilder& builder, const Groups& groups, int group, Slice source,
                           const Slice& all_output) {
  std::vector<Halving> rounds;
  Slice mine = all_output;
  for (int mask = 1; mask < groups.count; mask *= 2) {
    const bool lower = (group & mask) == 0;
    const Slice front = sub_slice(mine, 0, mine.count / 2);
    const Slice back = sub_slice(mine, front.count, mine.count - front.count);
    const Halving round{groups.leader(group ^ mask), lower ? front : back, lower ? back : front};
    builder.send(round.partner, sub_slice(source, round.given.offset, round.given.count));
    builder.recv_reduce(round.partner, sub_slice(source, round.kept.offset, round.kept.count), round.kept,
                        lower ? MessageSide::right : MessageSide::left);
    rounds.push_back(round);
    mine = round.kept;
    source = all_output;
  }
  return rounds;
}

// This is the algorithm of Rabenseifner, "Optimization of Collective Reduction Operations" (2004):
// reduce-scatter by recursive halving, then all-gather by recursive doubling. The nearest partners come
// first, so operands are combined in rank order, and the largest messages travel the shortest distance. As a
// result, the pieces are not in the order of the leaders, but nothing depends on that order. Cost: 2 log2 p
// rounds, 2 n bytes, n combined; if p is not a power of two, n more bytes before and n after.
void rabenseifner(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Groups groups(problem.size, 2);
  const int group = groups.group_of(problem.rank);
  const int leader = groups.leader(group);
  const Slice all_input = input(0, problem.count);
  const Slice all_output = output(0, problem.count);
  if (problem.rank != leader) return follow(builder, leader, all_input, all_output);
  Slice source = all_input;
  const bool has_member = groups.leader(group + 1) - leader > 1;
  if (has_member) {
    builder.recv_reduce(leader + 1, all_input, all_output, MessageSide::right);
    source = all_output;
  } else if (problem.size == 1) {
    builder.copy(all_input, all_output);
  }
  const std::vector<Halving> rounds = halve(builder, groups, group, source, all_output);
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    builder.send(round->partner, round->kept);
    builder.recv(round->partner, round->given);
  }
  if (has_member) builder.send(leader + 1, all_output);
}

double rabenseifner_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  const Groups groups(problem.size, 2);
  double seconds = 0;
  if (groups.larger > 0)
    seconds += terms.reducing_burst(1, terms.bytes(), terms.tree(2, 2)) +
               terms.burst(1, terms.bytes(), terms.tree(2, 2));
  double piece = terms.bytes();
  for (int mask = 1; mask < groups.count; mask *= 2) {
    piece /= 2;
    const Path path = terms.exchange(mask, groups.within_hosts(2 * mask, problem.topology));
    seconds += terms.reducing_burst(1, piece, path) + terms.burst(1, piece, path);
  }
  return seconds;
}

// This is a circulant reduce-scatter, then a circulant all-gather (see circulant.h). For every p, they move
// as few bytes as Rabenseifner's algorithm does for powers of two. Cost: 2 ceil(log2 p) rounds, 2 (p-1)/p n
// bytes, (p-1)/p n combined; a round has up to two messages.
void circulant(ScheduleBuilder& builder, const Problem& problem, const Tuning&) {
  const Blocks blocks = Blocks::balanced(problem.count, problem.size);
  const Slice work = output(0, problem.count);
  circulant_reduce_scatter(builder, problem, blocks, work, blocks.of(work, problem.rank));
  circulant_all_gather(builder, problem, blocks, work);
}

double circulant_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  return terms.circulant(terms.bytes(), true) + terms.circulant(terms.bytes(), false);
}

// This is a ring reduce-scatter, then a ring all-gather: Patarasuk, Yuan, "Bandwidth optimal all-reduce
// algorithms for clusters of workstations" (2009). Segments let the combining of one step overlap the next
// transfer, and hide latency. Cost: 2 (p-1) steps, 2 (p-1)/p n bytes, (p-1)/p n combined.
void ring(ScheduleBuilder& builder, const Problem& problem, const Tuning& tuning) {
  const int p = problem.size;
  const int r = problem.rank;
  const int next = shifted(r, 1, p);
  const int previous = shifted(r, -1, p);
  const Blocks blocks = Blocks::balanced(problem.count, p);
  const Segments segments(problem, tuning, blocks.largest(), 4 * static_cast<std::uint64_t>(p));
  if (p == 1) builder.copy(blocks.in_input(0), blocks.in_output(0));

  const auto step = [&](const Slice& sent, int received, bool combining) {
    const Slice target = blocks.in_output(received);
    const Slice local = blocks.in_input(received);
    for (std::uint64_t i = 0; i < std::max(segments.count(sent), segments.count(target)); ++i) {
      if (i < segments.count(sent)) builder.send(next, segments.at(sent, i));
      if (i >= segments.count(target)) continue;
      if (combining) {
        builder.recv_reduce(previous, segments.at(local, i), segments.at(target, i), MessageSide::left);
      } else {
        builder.recv(previous, segments.at(target, i));
      }
    }
  };
  for (int k = 0; k < p - 1; ++k) {
    const int block = shifted(r, -k, p);
    step(k == 0 ? blocks.in_input(block) : blocks.in_output(block), shifted(block, -1, p), true);
  }
  for (int k = 0; k < p - 1; ++k) {
    const int block = shifted(shifted(r, 1, p), -k, p);
    step(blocks.in_output(block), shifted(block, -1, p), false);
  }
}

double ring_cost(const Problem& problem, const Tuning& tuning, const CostModel& model) {
  const Terms terms(problem, tuning, model);
  const double block =
      static_cast<double>(Blocks::balanced(problem.count, problem.size).count(0)) * problem.element_size;
  return terms.ring(terms.p() - 1, block, true) + terms.ring(terms.p() - 1, block, false);
}

constexpr CollectiveKind kind = CollectiveKind::all_reduce;
constexpr std::array family = {
    Algorithm{1, "recursive_doubling", kind, true, radix_knob, always, recursive_doubling_cost,
              recursive_doubling},
    Algorithm{2, "rabenseifner", kind, true, 0, always, rabenseifner_cost, rabenseifner},
    Algorithm{3, "circulant", kind, false, 0, always, circulant_cost, circulant},
    Algorithm{4, "ring", kind, false, segment_knob, always, ring_cost, ring},
};

}  // namespace

std::span<const Algorithm> all_reduce_algorithms() { return family; }

}  // namespace tutti
