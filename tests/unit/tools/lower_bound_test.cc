#include "tools/lower_bound.h"

#include <gtest/gtest.h>

#include "collectives/schedule/selector.h"
#include "collectives/schedule/simulator.h"
#include "collectives/schedule/topology.h"
#include "tools/collective_size.h"

namespace tutti::tools {
namespace {

constexpr CollectiveKind kinds[] = {
    CollectiveKind::all_reduce,     CollectiveKind::reduce,     CollectiveKind::broadcast,
    CollectiveKind::all_gather,     CollectiveKind::all_to_all, CollectiveKind::gather,
    CollectiveKind::reduce_scatter, CollectiveKind::scatter,    CollectiveKind::scan,
    CollectiveKind::exscan,         CollectiveKind::barrier};

Problem problem_of(CollectiveKind kind, std::uint64_t bytes, int ranks) {
  Problem problem;
  problem.kind = kind;
  problem.size = ranks;
  problem.element_size = 4;
  problem.count = count_for(kind, bytes, ranks, DataType::float32);
  return problem;
}

// Each pair is a number of hosts and the number of ranks on each host.
constexpr std::pair<int, int> worlds[] = {{1, 1}, {1, 2},  {1, 3},  {1, 8}, {1, 33}, {2, 1},  {2, 4}, {3, 3},
                                          {5, 2}, {2, 12}, {3, 12}, {4, 8}, {8, 4},  {16, 8}, {25, 4}};

TEST(LowerBound, NoAlgorithmBeatsItOnSeveralHosts) {
  const CostModel model = shipped_model("tcp");
  for (const auto& [hosts, per_host] : {std::pair(2, 1), {2, 2}, {2, 4}, {3, 3}, {5, 2}, {4, 8}}) {
    const Topology topology = Topology::regular(hosts, per_host);
    for (const CollectiveKind kind : kinds) {
      for (const std::uint64_t bytes : {4, 4096, 1 << 20}) {
        Problem problem = problem_of(kind, bytes, topology.size());
        problem.topology = &topology;
        const double bound = lower_bound(problem, model).seconds();
        for (const Choice& choice : Selector::create(model, "").take().rank(problem)) {
          const double simulated = simulate(*choice.algorithm, problem, choice.tuning, model).seconds;
          EXPECT_GE(simulated * (1 + 1e-9), bound) << to_string(kind) << " of " << bytes << " on " << hosts
                                                   << " x " << per_host << ": " << describe(choice);
        }
      }
    }
  }
}

TEST(LowerBound, NoAlgorithmBeatsIt) {
  const CostModel model;
  for (const CollectiveKind kind : kinds) {
    for (const int ranks : {1, 2, 3, 4, 7, 8, 16, 33}) {
      for (const std::uint64_t bytes : {0, 4, 4096, 1 << 20}) {
        const Problem problem = problem_of(kind, bytes, ranks);
        const double bound = lower_bound(problem, model).seconds();
        for (const Choice& choice : Selector::create(model, "").take().rank(problem)) {
          const double simulated = simulate(*choice.algorithm, problem, choice.tuning, model).seconds;
          EXPECT_GE(simulated * (1 + 1e-9), bound)
              << to_string(kind) << " of " << bytes << " on " << ranks << ": " << describe(choice);
        }
      }
    }
  }
}

// The selector chooses algorithms by their estimated costs. This test compares the estimates with the bound,
// with and without shared memory, on one host and on several hosts.
TEST(LowerBound, NoEstimateIsBelowIt) {
  int judged = 0;
  const auto judge = [&](const Problem& problem, const CostModel& model) {
    const double bound = lower_bound(problem, model).seconds();
    for (const Choice& choice : Selector::create(model, "").take().rank(problem)) {
      ++judged;
      EXPECT_GE(choice.seconds * (1 + 1e-9), bound)
          << to_string(problem.kind) << " of " << problem.count << " on " << problem.size << " ranks, "
          << model.cores << " cores, window " << problem.window_bytes << ": " << describe(choice);
    }
  };
  for (const char* transport : {"shm", "tcp"}) {
    for (const auto& [hosts, per_host] : worlds) {
      const Topology topology = Topology::regular(hosts, per_host);
      for (const CollectiveKind kind : kinds) {
        for (const std::uint64_t bytes : {0, 4, 4096, 1 << 20, 64 << 20}) {
          Problem problem = problem_of(kind, bytes, topology.size());
          problem.topology = hosts == 1 ? nullptr : &topology;
          problem.window_bytes = hosts == 1 && std::string(transport) == "shm" ? 1 << 20 : 0;
          CostModel model = shipped_model(transport);
          judge(problem, model);
          model.cores = 2;
          judge(problem, model);
        }
      }
    }
  }
  EXPECT_GT(judged, 1000);
}

TEST(LowerBound, IsReached) {
  // The bound for this barrier is the time of one message.
  Problem problem;
  problem.kind = CollectiveKind::barrier;
  problem.size = 2;
  EXPECT_DOUBLE_EQ(lower_bound(problem, {}).seconds(), CostModel{}.near.alpha);
  // In this all_reduce, every rank must send and receive without a pause.
  problem.kind = CollectiveKind::all_reduce;
  problem.size = 4;
  problem.count = 1 << 28;
  problem.element_size = 1;
  EXPECT_DOUBLE_EQ(lower_bound(problem, {}).seconds(), 1.5 * (1 << 28) * CostModel{}.near.beta);
}

TEST(CollectiveSize, CountsAsNcclTestsDo) {
  EXPECT_EQ(count_for(CollectiveKind::all_reduce, 1024, 4, DataType::float32), 256u);
  EXPECT_EQ(count_for(CollectiveKind::all_gather, 1024, 4, DataType::float32), 64u);
  EXPECT_EQ(count_for(CollectiveKind::all_to_all, 1024, 3, DataType::float64), 42u);
  EXPECT_EQ(count_for(CollectiveKind::gather, 4, 4, DataType::float32), 1u);
  EXPECT_EQ(count_for(CollectiveKind::broadcast, 1, 4, DataType::float64), 1u);
  EXPECT_EQ(count_for(CollectiveKind::broadcast, 0, 4, DataType::float64), 0u);
  EXPECT_EQ(count_for(CollectiveKind::barrier, 1024, 4, DataType::uint8), 0u);
}

}  // namespace
}  // namespace tutti::tools
