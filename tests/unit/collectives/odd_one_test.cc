#include "collectives/group/odd_one.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tutti {
namespace {

using Calls = std::vector<std::optional<Fingerprint>>;

std::optional<Fingerprint> call(std::uint64_t count) {
  Fingerprint fingerprint;
  fingerprint.kind = CollectiveKind::all_reduce;
  fingerprint.count = count;
  return fingerprint;
}

// Compares all calls with each other, to find one that differs from the call of the majority.
std::optional<OddOne> by_definition(const Calls& calls) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i] || 2 * std::ranges::count(calls, calls[i]) <= std::ssize(calls)) continue;
    for (std::size_t j = 0; j < calls.size(); ++j) {
      if (calls[j] && calls[j] != calls[i]) return OddOne{static_cast<int>(j), static_cast<int>(i)};
    }
  }
  return {};
}

TEST(OddOne, IsFoundAsByDefinition) {
  std::mt19937 random(11);
  int found = 0;
  for (int round = 0; round < 20'000; ++round) {
    Calls calls(random() % 12);
    for (auto& each : calls) {
      // 0 means an unknown call, 1 means a rare call, and all other values mean the usual call.
      const std::uint64_t what = random() % 5;
      if (what > 0) each = call(what > 1 ? 1 : 2 + random() % 2);
    }
    const std::optional<OddOne> expected = by_definition(calls), odd = find_odd_one(calls);
    ASSERT_EQ(odd.has_value(), expected.has_value()) << "round " << round;
    if (!odd) continue;
    ++found;
    EXPECT_EQ(odd->odd, expected->odd) << "round " << round;
    EXPECT_EQ(odd->usual, expected->usual) << "round " << round;
  }
  EXPECT_GT(found, 1000);
}

// With this many ranks, a comparison of every call with every other call would take hours.
TEST(OddOne, IsLookedForAmongManyWhoAllDiffer) {
  constexpr std::size_t members = 2'000'000;
  Calls calls;
  for (std::size_t i = 0; i < members; ++i) calls.push_back(call(i));
  EXPECT_FALSE(find_odd_one(calls).has_value());
  for (std::size_t i = 0; i <= members / 2; ++i) calls[members - 1 - i] = call(members);
  const auto odd = find_odd_one(calls);
  ASSERT_TRUE(odd.has_value());
  EXPECT_EQ(odd->odd, 0);
  EXPECT_EQ(odd->usual, static_cast<int>(members / 2 - 1));
}

}  // namespace
}  // namespace tutti
