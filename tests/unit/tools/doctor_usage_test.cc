// Tests which addresses a job would use, and which addresses the doctor tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/doctor_hosts.h"
#include "tools/doctor/usage.h"

namespace tutti::tools::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(DoctorUsage, IsThatOfAJob) {
  HostFacts facts = healthy_facts(0, 3);
  EXPECT_THAT(usage_of(facts, "").addresses, ElementsAre("10.0.0.1"));
  EXPECT_THAT(usage_of(facts, "10.2.0.1").addresses, ElementsAre("10.2.0.1"));
  EXPECT_THAT(usage_of(facts, "127.0.0.1").addresses, ElementsAre("127.0.0.1"));
  facts.filter = "eth2,eth1";
  facts.filter_variable = "TUTTI_SOCKET_IFNAME";
  EXPECT_THAT(usage_of(facts, "10.0.0.1").addresses, ElementsAre("10.2.0.1", "10.1.0.1"));
  facts.filter = "ib";
  EXPECT_THAT(usage_of(facts, "").problem, HasSubstr("TUTTI_SOCKET_IFNAME is 'ib'"));
}

// Every host has an interface `lo`, so this host could take the address for one of its own.
TEST(DoctorUsage, IsNoLinkLocalAddressOfAnotherHost) {
  HostFacts facts = healthy_facts(0, 2);
  facts.interfaces[1].addresses = {{"fe80::1%lo", 64, 0}};
  facts.filter = "eth0";
  facts.filter_variable = "TUTTI_SOCKET_IFNAME";
  EXPECT_THAT(usage_of(facts, "").problem, HasSubstr("matches no network interface"));
  facts.interfaces[1].addresses.push_back({"10.0.0.1", 24, 4000});
  EXPECT_THAT(usage_of(facts, "").addresses, ElementsAre("10.0.0.1"));
}

TEST(DoctorUsage, MeetsWhereTheLauncherWouldMeet) {
  HostFacts facts = healthy_facts(0, 2);
  const auto meeting = meeting_of(facts, {"10.1.0.2", "10.1.0.3"}, {"10.1.0.1", "10.1.0.1"});
  ASSERT_TRUE(meeting.ok());
  EXPECT_EQ(meeting->address, "10.1.0.1");
  EXPECT_EQ(meeting->doubt, "");
  EXPECT_THAT(meeting_of(facts, {"10.0.0.2", "10.1.0.3"}, {"10.0.0.1", "10.1.0.1"})->doubt,
              HasSubstr("10.1.0.1"));
  facts.filter = "eth1";
  EXPECT_EQ(meeting_of(facts, {"10.0.0.2"}, {"10.0.0.1"})->address, "10.1.0.1");
  EXPECT_EQ(meeting_of(facts, {}, {})->address, "127.0.0.1");
  EXPECT_FALSE(meeting_of(facts, {"10.0.0.2"}, {}).ok());
  EXPECT_FALSE(meeting_of(facts, {"10.0.0.2"}, {""}).ok());
}

TEST(DoctorUsage, KnowsNetworks) {
  HostFacts facts = healthy_facts(4);
  EXPECT_EQ(network_of(facts, "10.0.0.5"), "10.0.0.0/24");
  EXPECT_EQ(network_of(facts, "10.0.0.6"), "");
  facts.interfaces[1].addresses.push_back({"fd00:0:0:1::5", 62, 4000});
  EXPECT_EQ(network_of(facts, "fd00:0:0:1::5"), "fd00::/62");
  EXPECT_TRUE(is_in("10.0.0.0/24", "10.0.0.200"));
  EXPECT_FALSE(is_in("10.0.0.0/24", "10.0.1.200"));
  EXPECT_TRUE(is_in("fd00::/62", "fd00:0:0:3::7"));
  EXPECT_FALSE(is_in("fd00::/62", "fd00:0:0:4::7"));
  for (const char* wrong : {"", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "no/24"}) {
    EXPECT_FALSE(is_in(wrong, "10.0.0.1")) << wrong;
  }
}

std::vector<std::string> targets(const std::vector<HostFacts>& facts, const std::vector<Usage>& usages) {
  std::vector<Resident> residents;
  for (std::size_t i = 0; i < facts.size(); ++i) residents.push_back({&facts[i], &usages[i]});
  std::vector<std::string> addresses;
  for (const Target& target : targets_of(residents, 0, 1)) {
    EXPECT_EQ(target.host, 1u);
    EXPECT_EQ(target.port, 4000);
    addresses.push_back(target.address);
  }
  return addresses;
}

TEST(DoctorTargets, AreAddressesInUseAndInCommonNetworks) {
  std::vector<HostFacts> facts = {healthy_facts(0, 2), healthy_facts(1, 3)};
  const std::vector<Usage> usages = {{{"10.0.0.1"}, ""}, {{"10.1.0.2"}, ""}};
  EXPECT_THAT(targets(facts, usages), ElementsAre("10.1.0.2", "10.0.0.2"));
}

TEST(DoctorTargets, AreAllAddressesIfTheHostsHaveNoNetworkInCommon) {
  std::vector<HostFacts> facts = {healthy_facts(0), healthy_facts(1)};
  facts[1].interfaces[1].addresses = {{"192.168.0.2", 24, 4000}, {"192.168.1.2", 24, 4000}};
  EXPECT_THAT(targets(facts, {{}, {}}), ElementsAre("192.168.0.2", "192.168.1.2"));
}

TEST(DoctorTargets, AreNoAddressesThatSeveralHostsHave) {
  std::vector<HostFacts> facts = {healthy_facts(0), healthy_facts(1), healthy_facts(2)};
  for (HostFacts& one : facts) {
    one.interfaces.push_back({.name = "docker0", .addresses = {{"172.17.0.1", 16, 4000}}});
  }
  EXPECT_THAT(targets(facts, {{}, {}, {}}), ElementsAre("10.0.0.2"));
  EXPECT_THAT(targets({facts[0], facts[0]}, {{}, {}}), IsEmpty());
}

TEST(DoctorTargets, AreEightAtMost) {
  EXPECT_EQ(targets({healthy_facts(0, 20), healthy_facts(1, 20)}, {{}, {}}).size(), 8u);
}

}  // namespace
}  // namespace tutti::tools::doctor
