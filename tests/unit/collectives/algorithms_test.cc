#include <numeric>

#include <gtest/gtest.h>

#include "collectives/schedule/algorithm.h"
#include "collectives/schedule/topology.h"
#include "tests/unit/collectives/proof_cases.h"

// This file uses the symbolic checker to prove every algorithm that sends messages, for every number of ranks
// from 1 to 64 and for some larger numbers. It proves algorithms for several hosts on some placements only.
namespace tutti::test {
namespace {

std::vector<int> rank_counts() {
  std::vector<int> sizes(64);
  std::iota(sizes.begin(), sizes.end(), 1);
  sizes.insert(sizes.end(), {100, 128, 255, 256});
  return sizes;
}

std::vector<std::uint64_t> counts_for(CollectiveKind kind, int size) {
  const auto p = static_cast<std::uint64_t>(size);
  if (kind == CollectiveKind::barrier) return {0};
  if (has_blocks(kind))
    return size <= 16 ? std::vector<std::uint64_t>{0, 1, 2, 7} : std::vector<std::uint64_t>{1, 3};
  if (size > 64) return {1, p + 1};
  return {0, 1, p - 1, p, 2 * p + 3};
}

std::vector<Tuning> tunings_for(const Algorithm& algorithm) {
  std::vector<Tuning> tunings(1);
  if ((algorithm.knobs & radix_knob) != 0) {
    for (const std::uint32_t radix : {3u, 4u, 8u}) tunings.push_back({radix, 0, 8});
  }
  if ((algorithm.knobs & segment_knob) != 0) {
    for (const std::uint64_t bytes : {1u, 4u, 12u}) tunings.push_back({2, bytes, 8});
  }
  if ((algorithm.knobs & window_knob) != 0) {
    for (const std::uint32_t window : {1u, 2u}) tunings.push_back({2, 0, window});
  }
  return tunings;
}

// A case is one count, in place or not. For few ranks, this proves every case with all combinations
// of tuning, variant and root. For many ranks, it proves each case with only one combination, and
// the combinations take turns.
void prove(const Algorithm& algorithm, int size, std::uint32_t& seed, const Topology* topology = nullptr) {
  Problem shape;
  shape.kind = algorithm.kind;
  shape.size = size;
  shape.topology = topology;
  if (!algorithm.applies(shape)) return;
  const auto tunings = tunings_for(algorithm);
  const auto variants = variants_for(algorithm);
  const auto roots = roots_for(algorithm.kind, size);
  const std::size_t combinations = tunings.size() * variants.size() * roots.size();
  for (const std::uint64_t count : counts_for(algorithm.kind, size)) {
    for (const bool in_place : {false, true}) {
      for (std::size_t i = 0; i < (size <= 9 ? combinations : 1); ++i) {
        const std::size_t pick = size <= 9 ? i : seed % combinations;
        const std::size_t root = pick / tunings.size() / variants.size();
        const Variant& variant = variants[pick / tunings.size() % variants.size()];
        ScheduleCase test(algorithm.kind, size, count, roots[root], in_place);
        test.base.topology = topology;
        variant.apply(test.base);
        const std::string error = check_algorithm(algorithm, test, tunings[pick % tunings.size()], ++seed);
        ASSERT_EQ(error, "");
      }
    }
  }
}

void prove_all(CollectiveKind kind) {
  std::uint32_t seed = 0;
  int proved = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind != kind || algorithm.shared) continue;
    for (const int size : rank_counts()) {
      prove(algorithm, size, seed);
      if (testing::Test::HasFatalFailure()) return;
    }
    ++proved;
  }
  EXPECT_GT(proved, 0);
}

TEST(ProveAllReduce, EveryRankCount) { prove_all(CollectiveKind::all_reduce); }
TEST(ProveReduce, EveryRankCount) { prove_all(CollectiveKind::reduce); }
TEST(ProveBroadcast, EveryRankCount) { prove_all(CollectiveKind::broadcast); }
TEST(ProveAllGather, EveryRankCount) { prove_all(CollectiveKind::all_gather); }
TEST(ProveAllGather, EveryRankCountV) { prove_all(CollectiveKind::all_gather_v); }
TEST(ProveReduceScatter, EveryRankCount) { prove_all(CollectiveKind::reduce_scatter); }
TEST(ProveReduceScatter, EveryRankCountV) { prove_all(CollectiveKind::reduce_scatter_v); }
TEST(ProveAllToAll, EveryRankCount) { prove_all(CollectiveKind::all_to_all); }
TEST(ProveAllToAll, EveryRankCountV) { prove_all(CollectiveKind::all_to_all_v); }
TEST(ProveGather, EveryRankCount) { prove_all(CollectiveKind::gather); }
TEST(ProveGather, EveryRankCountV) { prove_all(CollectiveKind::gather_v); }
TEST(ProveScatter, EveryRankCount) { prove_all(CollectiveKind::scatter); }
TEST(ProveScatter, EveryRankCountV) { prove_all(CollectiveKind::scatter_v); }
TEST(ProveScan, EveryRankCount) { prove_all(CollectiveKind::scan); }
TEST(ProveScan, EveryRankCountExclusive) { prove_all(CollectiveKind::exscan); }
TEST(ProveBarrier, EveryRankCount) { prove_all(CollectiveKind::barrier); }

// Returns placements, some regular and some irregular. A placement lists the host of each rank. The ranks of
// a host may be consecutive or not.
std::vector<std::vector<int>> placements() {
  std::vector<std::vector<int>> all = {
      {0, 0, 1, 1}, {0, 1, 0, 1},       {0, 0, 0, 1},       {0, 1, 1, 1, 1},
      {0, 1, 2, 2}, {0, 1, 1, 0, 2, 1}, {0, 0, 1, 1, 2, 2}, {2, 0, 0, 1, 1, 1, 0},
  };
  for (const auto& [hosts, ranks] : {std::pair(2, 4), {3, 3}, {4, 4}, {2, 8}, {5, 3}, {8, 8}}) {
    auto& together = all.emplace_back();
    for (int rank = 0; rank < hosts * ranks; ++rank) together.push_back(rank / ranks);
    auto& in_turn = all.emplace_back();
    for (int rank = 0; rank < hosts * ranks; ++rank) in_turn.push_back(rank % hosts);
    auto& scattered = all.emplace_back();
    for (int rank = 0; rank < hosts * ranks; ++rank) scattered.push_back(rank * rank % (hosts + 1));
  }
  return all;
}

TEST(ProveTwoLevel, EveryPlacement) {
  std::uint32_t seed = 0;
  std::set<CollectiveKind> kinds;
  for (const std::vector<int>& hosts : placements()) {
    const Topology topology(hosts);
    for (const Algorithm& algorithm : algorithms()) {
      Problem one_host;
      one_host.kind = algorithm.kind;
      one_host.size = topology.size();
      if (algorithm.applies(one_host)) continue;  // proved above
      prove(algorithm, topology.size(), seed, &topology);
      if (HasFatalFailure()) {
        ADD_FAILURE() << algorithm.name << " on hosts " << testing::PrintToString(hosts);
        return;
      }
      kinds.insert(algorithm.kind);
    }
  }
  EXPECT_GE(kinds.size(), 6u);
}

}  // namespace
}  // namespace tutti::test
