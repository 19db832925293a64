#include "collectives/schedule/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::ElementsAre;

TEST(Topology, HostsAreNumberedByTheirFirstRanks) {
  const Topology topology(std::vector<int>{7, 3, 7, 3, 3});
  EXPECT_EQ(topology.size(), 5);
  EXPECT_EQ(topology.hosts(), 2);
  EXPECT_EQ(topology.host_of(0), 0);
  EXPECT_EQ(topology.host_of(4), 1);
  EXPECT_THAT(topology.members(0), ElementsAre(0, 2));
  EXPECT_THAT(topology.members(1), ElementsAre(1, 3, 4));
  EXPECT_EQ(topology.place_of(2), 1);
  EXPECT_EQ(topology.place_of(4), 2);
  EXPECT_EQ(topology.fewest(), 2);
  EXPECT_EQ(topology.most(), 3);
  EXPECT_FALSE(topology.regular());
}

TEST(Topology, Regular) {
  EXPECT_TRUE(Topology::regular(3, 4).regular());
  EXPECT_EQ(Topology::regular(3, 4).hosts(), 3);
  EXPECT_TRUE(Topology(std::vector<int>{0}).regular());
  EXPECT_FALSE(Topology(std::vector<int>{0, 1, 0, 1}).regular());  // the ranks of a host are not consecutive
}

PeerInfo peer(std::string boot_id, std::uint64_t network) {
  PeerInfo info;
  info.boot_id = std::move(boot_id);
  info.network_namespace = network;
  return info;
}

TEST(Topology, AHostIsAKernelAndANetworkNamespace) {
  const std::vector<PeerInfo> peers = {peer("a", 1), peer("a", 2), peer("b", 1), peer("a", 1)};
  EXPECT_THAT(hosts_of(peers), ElementsAre(0, 1, 2, 0));
}

TEST(Topology, HostsWithTheSameKernelShareAMachine) {
  EXPECT_EQ(hosts_per_machine(std::vector{peer("a", 1), peer("b", 2), peer("a", 1)}), 1);
  EXPECT_EQ(hosts_per_machine(std::vector{peer("a", 1), peer("b", 2), peer("a", 3), peer("a", 4)}), 3);
}

}  // namespace
}  // namespace tutti
