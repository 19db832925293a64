#include "collectives/schedule/simulator.h"

#include <gtest/gtest.h>

#include "collectives/schedule/selector.h"
#include "collectives/schedule/topology.h"

namespace tutti {
namespace {

Problem problem(CollectiveKind kind, int size, std::uint64_t count) {
  Problem p;
  p.kind = kind;
  p.size = size;
  p.count = count;
  p.element_size = 1;
  return p;
}

Simulation run(CollectiveKind kind, std::string_view name, int size, std::uint64_t count,
               const Tuning& tuning = {}) {
  return simulate(*find_algorithm(kind, name), problem(kind, size, count), tuning, CostModel{});
}

TEST(Simulator, OneMessageEachWay) {
  const CostModel model;
  const Simulation result = run(CollectiveKind::all_reduce, "recursive_doubling", 2, 1000);
  EXPECT_EQ(result.messages, 2u);
  EXPECT_EQ(result.bytes, 2000u);
  EXPECT_EQ(result.max_rank_bytes, 1000u);
  EXPECT_DOUBLE_EQ(result.seconds, model.near.alpha + 1000 * model.near.beta + 1000 * model.gamma);
}

TEST(Simulator, ChainIsAPipeline) {
  const CostModel model;
  const Simulation result = run(CollectiveKind::broadcast, "chain", 5, 1000, {.segment_bytes = 100});
  const double hop = model.near.alpha + 100 * model.near.beta;
  EXPECT_NEAR(result.seconds, 4 * hop + 9 * (model.near.gap + 100 * model.near.beta), 1e-12);
  EXPECT_EQ(result.messages, 40u);
}

TEST(Simulator, PortsServeOneMessageAtATime) {
  const CostModel model;
  const Simulation result = run(CollectiveKind::gather, "linear", 9, 1 << 20);
  EXPECT_GE(result.seconds, 8 * (1 << 20) * model.near.beta);
  EXPECT_LE(result.seconds,
            8 * ((1 << 20) * model.near.beta * model.congestion + model.near.gap) + model.near.alpha);
}

TEST(Simulator, RingMovesTheLeastPossible) {
  const Simulation result = run(CollectiveKind::all_reduce, "ring", 8, 8000);
  EXPECT_EQ(result.max_rank_bytes, 2u * 7 * 1000);
  EXPECT_EQ(result.bytes, 8u * 2 * 7 * 1000);
}

TEST(Simulator, Deterministic) {
  const Simulation a = run(CollectiveKind::all_to_all, "bruck", 13, 777);
  const Simulation b = run(CollectiveKind::all_to_all, "bruck", 13, 777);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.messages, b.messages);
}

// The selector estimates costs by closed forms. The simulator runs the real schedules. Their results must
// agree within a factor of two.
TEST(Simulator, ClosedFormsAreWithinAFactorOfTwo) {
  constexpr double factor = 2.0;
  const CostModel model;
  for (const Algorithm& algorithm : algorithms()) {
    for (int size = 2; size <= 64; size += size < 20 ? 1 : 11) {
      for (const std::uint64_t count : {std::uint64_t{64}, std::uint64_t{65536}, std::uint64_t{4} << 20}) {
        Problem p = problem(algorithm.kind, size, count);
        if (!algorithm.applies(p) || algorithm.kind == CollectiveKind::all_to_all_v) continue;
        const bool counted =
            algorithm.kind == CollectiveKind::gather_v || algorithm.kind == CollectiveKind::scatter_v;
        if (counted) continue;  // such a kind has one algorithm, so its estimate is unused
        const std::vector<std::uint64_t> counts(static_cast<std::size_t>(size), count);
        p.input_counts = p.output_counts = counts;
        std::vector<Tuning> tunings = {{2, 0, 8}};
        if ((algorithm.knobs & radix_knob) != 0) tunings.push_back({4, 0, 8});
        if ((algorithm.knobs & segment_knob) != 0) tunings.push_back({2, 65536, 8});
        for (const Tuning& tuning : tunings) {
          const double simulated = simulate(algorithm, p, tuning, model).seconds;
          const double estimated = algorithm.cost(p, tuning, model);
          const bool close = estimated <= simulated * factor && simulated <= estimated * factor;
          EXPECT_TRUE(close) << to_string(p.kind) << ' ' << algorithm.name << " p=" << size
                             << " count=" << count << " radix=" << tuning.radix
                             << " segment=" << tuning.segment_bytes << ": simulated " << simulated * 1e6
                             << " us, estimated " << estimated * 1e6 << " us";
        }
      }
    }
  }
}

// Returns the costs of a cluster whose hosts are far apart.
CostModel clustered() {
  CostModel model;
  model.near = {.alpha = 2e-6, .gap = 0.5e-6, .beta = 0.1e-9, .busy = 0.3e-6, .busy_byte = 0.05e-9};
  model.far = {.alpha = 20e-6, .gap = 5e-6, .beta = 0.4e-9, .busy = 3e-6, .busy_byte = 0.1e-9};
  model.gamma = 0.03e-9;
  return model;
}

TEST(Simulator, TwoLevelsSendTheLeastBetweenHosts) {
  const std::uint64_t n = 1 << 20;
  for (const auto& [hosts, ranks] : {std::pair(2, 4), {3, 4}, {4, 2}, {8, 8}}) {
    const Topology topology = Topology::regular(hosts, ranks);
    Problem p = problem(CollectiveKind::all_reduce, hosts * ranks, n);
    p.topology = &topology;
    const auto bytes = [&](std::string_view name, const Tuning& tuning) {
      const Algorithm* algorithm = find_algorithm(CollectiveKind::all_reduce, name);
      return static_cast<double>(simulate(*algorithm, p, tuning, clustered()).max_host_bytes);
    };
    const double least = 2.0 * (hosts - 1) / hosts * n;
    EXPECT_NEAR(bytes("two_level", {}), least, 64);
    EXPECT_NEAR(bytes("two_level", {.segment_bytes = 65536}), least, 64 * 16);
    EXPECT_GT(bytes("ring", {}), least * (hosts == 2 ? 1.7 : 1.1));
  }
}

TEST(Simulator, TheRanksOfAHostShareItsPort) {
  const Topology together = Topology::regular(2, 4);
  Problem p = problem(CollectiveKind::all_to_all, 8, 1 << 20);
  p.topology = &together;
  // Each of four ranks has four blocks for the other host.
  EXPECT_GE(simulate(*find_algorithm(p.kind, "pairwise"), p, {}, clustered()).seconds,
            16 * (1 << 20) * clustered().far.beta);
}

TEST(Simulator, RanksShareCores) {
  const Problem p = problem(CollectiveKind::all_reduce, 8, 8);
  CostModel model;
  model.near.busy = model.near.gap;
  const Algorithm* doubling = find_algorithm(p.kind, "recursive_doubling");
  const double alone = simulate(*doubling, p, {}, model).seconds;
  EXPECT_NEAR(alone, 3 * model.near.alpha, 1e-6);
  model.cores = 1;
  // There are 24 messages with work at both ends, and one core does all this work.
  EXPECT_GE(simulate(*doubling, p, {}, model).seconds, 48 * model.near.busy);
}

TEST(Simulator, HostsShareTheCoresOfAMachine) {
  const Topology topology = Topology::regular(4, 2);
  Problem p = problem(CollectiveKind::all_to_all, 8, 8);
  p.topology = &topology;
  CostModel model = clustered();
  model.cores = 2;
  const Algorithm* pairwise = find_algorithm(p.kind, "pairwise");
  const double apart = simulate(*pairwise, p, {}, model).seconds;
  const double estimated_apart = pairwise->cost(p, {}, model);
  model.hosts_per_machine = 4;
  // Each of eight ranks sends six messages to other hosts. Each message causes work at both ends.
  EXPECT_GE(simulate(*pairwise, p, {}, model).seconds, 8 * 6 * 2 * model.far.busy / model.cores);
  EXPECT_GT(simulate(*pairwise, p, {}, model).seconds, 1.5 * apart);
  EXPECT_GT(pairwise->cost(p, {}, model), 1.5 * estimated_apart);
}

// A root that repeats its broadcast runs ahead of the other ranks, so its messages leave in a row.
TEST(Simulator, MessagesInARowTakeLessWork) {
  const Problem p = problem(CollectiveKind::broadcast, 2, 8);
  CostModel model;
  model.cores = 1;
  model.near.gap = model.near.busy / 10;
  constexpr int repetitions = 100;
  const double again = simulate(*find_algorithm(p.kind, "binomial"), p, {}, model, repetitions).seconds;
  EXPECT_LT(again, model.near.busy);
  EXPECT_GE(again, model.near.gap);
}

// Consecutive small messages share packets, so their work grows with their size. A message that
// fills a packet gains nothing from earlier messages.
TEST(Simulator, AsManyMessagesAsFitIntoAPacketTravelTogether) {
  const Topology apart = Topology::regular(2, 1);
  CostModel model = clustered();
  model.cores = 1;
  model.hosts_per_machine = 2;
  model.far.gap = model.far.busy / 10;
  model.far.busy_byte = 0;
  const auto again = [&](std::uint64_t bytes) {
    Problem p = problem(CollectiveKind::broadcast, 2, bytes);
    p.topology = &apart;
    return simulate(*find_algorithm(p.kind, "binomial"), p, {}, model, 100).seconds;
  };
  EXPECT_LT(again(8), 0.2 * model.far.busy);
  EXPECT_GT(again(360), 1.5 * again(8));
  EXPECT_LT(again(360), model.far.busy);
  EXPECT_GE(again(1448), 2 * model.far.busy);
  EXPECT_NEAR(again(14480), again(1448), 0.1 * model.far.busy + 14480 * model.far.beta);
}

TEST(Simulator, ClosedFormsOfSeveralHostsAreWithinAFactor) {
  constexpr double factor = 3.1;
  for (const auto& [hosts, ranks] : {std::pair(2, 2), {2, 4}, {3, 3}, {4, 4}, {8, 2}, {8, 8}}) {
    const Topology topology = Topology::regular(hosts, ranks);
    for (const Algorithm& algorithm : algorithms()) {
      for (const std::uint64_t count : {std::uint64_t{64}, std::uint64_t{65536}, std::uint64_t{4} << 20}) {
        Problem p = problem(algorithm.kind, hosts * ranks, count);
        p.topology = &topology;
        const bool counted = std::string_view(to_string(p.kind)).ends_with("_v");
        if (counted || !algorithm.applies(p)) continue;
        for (const std::uint64_t segment : {0, 65536}) {
          if (segment != 0 && (algorithm.knobs & segment_knob) == 0) continue;
          const Tuning tuning{2, segment, 8};
          const double simulated = simulate(algorithm, p, tuning, clustered()).seconds;
          const double estimated = algorithm.cost(p, tuning, clustered());
          const bool close = estimated <= simulated * factor && simulated <= estimated * factor;
          EXPECT_TRUE(close) << to_string(p.kind) << ' ' << algorithm.name << " on " << hosts << " x "
                             << ranks << " count=" << count << " segment=" << segment << ": simulated "
                             << simulated * 1e6 << " us, estimated " << estimated * 1e6 << " us";
        }
      }
    }
  }
}

// docs/scaling.md uses the closed forms for numbers of ranks that are too large for a simulation.
TEST(Simulator, ClosedFormsOfHundredsOfRanksAreWithinAFactorOfTwo) {
  constexpr double factor = 2.0;
  const Selector selector = Selector::create(CostModel{}, "").take();
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::broadcast, CollectiveKind::reduce,
        CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::barrier}) {
    for (const int size : {128, 1000, 1024}) {
      for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{64} << 20}) {
        const bool blocks = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
        const Problem p = problem(kind, size, blocks ? std::max<std::uint64_t>(bytes / size, 1) : bytes);
        for (const Choice& choice : selector.rank(p)) {
          const std::size_t steps = build_schedule(*choice.algorithm, p, choice.tuning).steps.size();
          if (steps * static_cast<std::size_t>(size) > 300'000) continue;
          const double simulated = simulate(*choice.algorithm, p, choice.tuning, CostModel{}).seconds;
          const bool close = choice.seconds <= simulated * factor && simulated <= choice.seconds * factor;
          EXPECT_TRUE(close) << to_string(kind) << " of " << bytes << " on " << size << ": "
                             << describe(choice) << " estimated, " << simulated * 1e6 << " us simulated";
        }
      }
    }
  }
}

TEST(Simulator, RepetitionsOverlap) {
  const Problem p = problem(CollectiveKind::broadcast, 2, 8);
  const Algorithm* binomial = find_algorithm(p.kind, "binomial");
  const CostModel model;
  // The root continues as soon as its message has left.
  EXPECT_NEAR(simulate(*binomial, p, {}, model, 100).seconds, model.near.gap, model.near.alpha / 50);
  EXPECT_EQ(simulate(*binomial, p, {}, model, 100).messages, 100u);
}

TEST(Simulator, ThousandsOfRanks) {
  const CostModel model;
  const Simulation result = run(CollectiveKind::all_reduce, "recursive_doubling", 4096, 8);
  EXPECT_EQ(result.messages, 4096u * 12);
  EXPECT_GE(result.seconds, 12 * model.near.alpha);
  EXPECT_EQ(run(CollectiveKind::barrier, "dissemination", 4096, 0).messages, 4096u * 12);
  EXPECT_EQ(run(CollectiveKind::broadcast, "binomial", 4096, 8).messages, 4095u);
  EXPECT_GT(run(CollectiveKind::all_reduce, "rabenseifner", 4096, 1 << 20).seconds, 24 * model.near.alpha);
}

}  // namespace
}  // namespace tutti
