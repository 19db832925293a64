// Tests every collective, type and operation over every transport. A plain computation gives the right
// answers.

#include <algorithm>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "collectives/schedule/algorithm.h"
#include "tests/support/cluster.h"
#include "tests/support/collective_case.h"

namespace tutti::test {
namespace {

class Collectives : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  std::string transport() const { return std::get<0>(GetParam()); }
  int size() const { return std::get<1>(GetParam()); }
  // Returns whether a call in this world with elements of four bytes may request the algorithm by name.
  bool applies(const Algorithm& algorithm, std::uint64_t count) const {
    Problem problem;
    problem.kind = algorithm.kind;
    problem.size = size();
    problem.count = count;
    problem.element_size = 4;
    if (transport() == "shared" && size() > 1) problem.window_bytes = ClusterOptions{}.window_bytes;
    return algorithm.applies(problem);
  }
};

void run_all(Cluster& cluster, const std::vector<CollectiveCase>& cases) {
  cluster.run([&](Communicator& comm) {
    for (const CollectiveCase& test : cases) {
      const std::string wrong = run_case(comm, test);
      ASSERT_EQ(wrong, "");
    }
  });
}

TEST_P(Collectives, EveryKindTypeAndOperation) {
  Cluster ranks(size(), {.transport = transport()});
  run_all(ranks, tested_matrix(size()));
}

// Vectors and their pieces are smaller by this factor unless TEST_ALL is set.
std::uint64_t shrunk_by() { return test_all() ? 1 : 4; }

TEST_P(Collectives, EveryAlgorithm) {
  const auto fewer = static_cast<std::uint32_t>(shrunk_by());
  ClusterOptions options{.transport = transport()};
  options.limits.eager /= fewer;
  options.limits.credit /= fewer;
  options.limits.fragment /= fewer;
  options.window_bytes /= fewer;
  Cluster ranks(size(), options);
  std::vector<CollectiveCase> cases;
  for (const Algorithm& algorithm : algorithms()) {
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{37}, 20'000 / shrunk_by()}) {
      for (const bool in_place : {false, true}) {
        if (in_place && !has_in_place(algorithm.kind)) continue;
        CollectiveCase test;
        test.kind = algorithm.kind;
        test.type = DataType::int32;
        test.op = algorithm.rank_order ? last_nonzero() : ReduceOp::sum;
        test.count = count;
        test.root = size() - 1;
        test.in_place = in_place;
        test.algorithm = algorithm.name;
        if (applies(algorithm, count)) cases.push_back(test);
      }
    }
  }
  run_all(ranks, cases);
}

// These counts are large enough for every path: requests, fragments, pipelines.
TEST_P(Collectives, LargeCounts) {
  Cluster ranks(size(),
                {.transport = transport(), .limits = {.eager = 256, .credit = 4096, .fragment = 4096}});
  std::vector<CollectiveCase> cases;
  for (int k = 0; k < collective_kind_count; ++k) {
    CollectiveCase test;
    test.kind = static_cast<CollectiveKind>(k);
    if (test.kind == CollectiveKind::send || test.kind == CollectiveKind::recv) continue;
    test.type = k % 2 == 0 ? DataType::float32 : DataType::int64;
    test.count = 50'021 / shrunk_by();
    test.root = k % size();
    cases.push_back(test);
  }
  run_all(ranks, cases);
}

TEST_P(Collectives, ManyInFlightMatchByOrderOfIssue) {
  Cluster ranks(size(), {.transport = transport()});
  ranks.run([&](Communicator& comm) {
    constexpr std::size_t operations = 64;
    std::vector<std::vector<std::int64_t>> data(operations);
    std::vector<Work> works;
    for (std::size_t i = 0; i < operations; ++i) {
      data[i].assign(i * 97 % 5000 + 1, static_cast<std::int64_t>(i) + comm.rank());
      works.push_back(comm.all_reduce(data[i], ReduceOp::sum));
    }
    // Waits for the operations in the reverse order of issue.
    for (std::size_t i = operations; i-- > 0;) works[i].wait();
    const std::int64_t ranks_sum = comm.size() * (comm.size() - 1) / 2;
    for (std::size_t i = 0; i < operations; ++i) {
      for (const std::int64_t value : data[i]) {
        ASSERT_EQ(value, static_cast<std::int64_t>(i) * comm.size() + ranks_sum);
      }
    }
  });
}

TEST_P(Collectives, BitwiseEqualResults) {
  Cluster ranks(size(), {.transport = transport()});
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind != CollectiveKind::all_reduce || !applies(algorithm, 4099)) continue;
    std::vector<std::vector<float>> results(static_cast<std::size_t>(size()));
    ranks.run([&](Communicator& comm) {
      std::vector<float> data(4099);
      std::uint32_t state = 12345u + static_cast<std::uint32_t>(comm.rank());
      for (float& value : data) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<float>(state >> 8) * 1e-5f - 50.0f;
      }
      comm.all_reduce(data, ReduceOp::sum, {.algorithm = algorithm.name}).wait();
      results[static_cast<std::size_t>(comm.rank())] = data;
    });
    for (const auto& result : results) EXPECT_EQ(result, results.front()) << algorithm.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Collectives,
                         testing::Combine(testing::ValuesIn(all_connections()),
                                          testing::Values(1, 2, 3, 4, 7, 8)),
                         [](const auto& parameter) {
                           return std::get<0>(parameter.param) + "_" +
                                  std::to_string(std::get<1>(parameter.param));
                         });

}  // namespace
}  // namespace tutti::test
