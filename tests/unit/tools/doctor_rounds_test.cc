// Tests the order in which `tutti doctor` tests pairs of hosts.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "tools/doctor/rounds.h"

namespace tutti::tools::doctor {
namespace {

void expect_disjoint(const Round& round, std::size_t hosts) {
  std::set<std::size_t> busy;
  for (const auto& [one, other] : round) {
    EXPECT_LT(one, hosts);
    EXPECT_LT(other, hosts);
    EXPECT_TRUE(busy.insert(one).second && busy.insert(other).second);
  }
}

TEST(DoctorRounds, HaveEachPairOnceAndNoHostTwiceInARound) {
  for (std::size_t hosts = 0; hosts <= 64; ++hosts) {
    const std::vector<Round> rounds = plan_rounds(hosts);
    std::set<Pair> pairs;
    for (const Round& round : rounds) {
      expect_disjoint(round, hosts);
      for (const Pair& pair : round) EXPECT_TRUE(pairs.insert(std::minmax(pair.first, pair.second)).second);
    }
    EXPECT_EQ(pairs.size(), hosts < 2 ? 0 : hosts * (hosts - 1) / 2);
    EXPECT_LE(rounds.size(), most_rounds);
  }
}

TEST(DoctorRounds, AreLimitedForManyHosts) {
  for (const std::size_t hosts : {65, 100, 1001}) {
    const std::vector<Round> rounds = plan_rounds(hosts);
    EXPECT_EQ(rounds.size(), most_rounds);
    std::vector<std::size_t> partners(hosts, 0);
    for (const Round& round : rounds) {
      expect_disjoint(round, hosts);
      for (const auto& [one, other] : round) {
        ++partners[one];
        ++partners[other];
      }
    }
    EXPECT_GE(*std::ranges::min_element(partners), most_rounds - 1);  // a host may rest once
  }
}

}  // namespace
}  // namespace tutti::tools::doctor
