// Tests the address that a rank publishes, and whether the addresses of two ranks match.
#include "transport/verbs/address.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::verbs {
namespace {

constexpr const char* ethernet =
    "10.0.0.1:4711,[2001:db8::1]:4712/8c1f00d2b5a69e37/e134+e1/131072,1048576,131072";
constexpr const char* infiniband = "10.0.0.1:4711/8c1f00d2b5a69e37/ife80000000000001/131072,1048576,131072";

TEST(VerbsAddress, IsReadAsItIsWritten) {
  const auto first = parse_address(ethernet);
  ASSERT_TRUE(first);
  EXPECT_EQ(format(*first), ethernet);
  EXPECT_EQ(first->endpoints.size(), 2u);
  EXPECT_EQ(first->nonce, 0x8c1f00d2b5a69e37u);
  ASSERT_EQ(first->fabrics.size(), 2u);
  EXPECT_TRUE(first->fabrics[0].ethernet);
  EXPECT_EQ(first->fabrics[0].kinds, (std::vector<std::uint8_t>{1, 3, 4}));
  EXPECT_EQ(first->fabrics[1].kinds, (std::vector<std::uint8_t>{1}));
  const auto second = parse_address(infiniband);
  ASSERT_TRUE(second);
  EXPECT_EQ(format(*second), infiniband);
  ASSERT_EQ(second->fabrics.size(), 1u);
  EXPECT_FALSE(second->fabrics[0].ethernet);
  EXPECT_EQ(second->fabrics[0].subnet, 0xfe80000000000001u);
}

TEST(VerbsAddress, EveryPartIsChecked) {
  const std::string good = ethernet;
  for (std::size_t length = 0; length < good.size() - 5; ++length)
    EXPECT_FALSE(parse_address(good.substr(0, length))) << good.substr(0, length);
  for (const char* text :
       {"10.0.0.1:4711/8c1f00d2b5a69e37/e/131072,1048576,131072",
        "10.0.0.1:4711/8c1f00d2b5a69e37/e1+/131072,1048576,131072",
        "10.0.0.1:4711/8c1f00d2b5a69e37/e1+e1+e1+e1+e1/131072,1048576,131072",
        "10.0.0.1:4711/8c1f00d2b5a69e37/e123456789/131072,1048576,131072",
        "10.0.0.1:4711/8c1f00d2b5a69e37/x1/131072,1048576,131072",
        "10.0.0.1:4711/8c1f00d2b5a69e37/i1/131072,1048576,131072",
        "10.0.0.1:4711/8c1f00d2b5a69e37//131072,1048576,131072",
        "10.0.0.1:4711/8c1f/e1/131072,1048576,131072", "10.0.0.1:0/8c1f00d2b5a69e37/e1/131072,1048576,131072",
        "10.0.0.1/8c1f00d2b5a69e37/e1/131072,1048576,131072",
        "2001:db8::1:4711/8c1f00d2b5a69e37/e1/131072,1048576,131072",
        "host:4711/8c1f00d2b5a69e37/e1/131072,1048576,131072", "/8c1f00d2b5a69e37/e1/131072,1048576,131072",
        "10.0.0.1:4711/8c1f00d2b5a69e37/e1/131072,1048576,131072/1"}) {
    EXPECT_FALSE(parse_address(text)) << text;
  }
}

TEST(VerbsAddress, TwoPortsMustHaveAKindOfAddressInCommon) {
  using Kinds = std::vector<std::uint8_t>;
  const auto roce = [](Kinds kinds) { return Fabric{.ethernet = true, .kinds = std::move(kinds)}; };
  EXPECT_EQ(common_kinds(roce({1, 3, 4}), roce({4, 2, 1})), (Kinds{1, 4}));
  EXPECT_EQ(common_kinds(roce({4, 2, 1}), roce({1, 3, 4})), (Kinds{1, 4}));
  EXPECT_EQ(common_kinds(roce({1}), roce({4})), Kinds{});
  const Fabric east{.subnet = 1, .kinds = {0}}, west{.subnet = 2, .kinds = {0}};
  EXPECT_EQ(common_kinds(east, east), Kinds{0});
  EXPECT_EQ(common_kinds(east, west), Kinds{});
  EXPECT_EQ(common_kinds(east, roce({0})), Kinds{});
}

Address with_ports(std::vector<Fabric> fabrics) {
  Address address;
  address.fabrics = std::move(fabrics);
  return address;
}

// Checks the pairs from both sides. Each pair of `expected` has the index of the lower rank's port, and then
// the index of the higher rank's port.
void expect_pairs(const Address& lower, const Address& higher,
                  const std::vector<std::pair<std::size_t, std::size_t>>& expected) {
  const std::vector<RailPair> below = pair_rails(lower, higher, true);
  const std::vector<RailPair> above = pair_rails(higher, lower, false);
  ASSERT_EQ(below.size(), expected.size());
  ASSERT_EQ(above.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(std::pair(below[i].ours, below[i].theirs), expected[i]);
    EXPECT_EQ(std::pair(above[i].theirs, above[i].ours), expected[i]);
    EXPECT_EQ(below[i].kinds, above[i].kinds);
  }
}

TEST(VerbsAddress, BothRanksPairTheirPortsAlike) {
  const Fabric roce{.ethernet = true, .kinds = {1, 2}}, old{.ethernet = true, .kinds = {4}};
  const Fabric east{.subnet = 1, .kinds = {0}}, west{.subnet = 2, .kinds = {0}};
  expect_pairs(with_ports({roce, roce}), with_ports({roce, roce}), {{0, 0}, {1, 1}});
  expect_pairs(with_ports({roce, roce, roce}), with_ports({roce}), {{0, 0}});
  expect_pairs(with_ports({roce}), with_ports({roce, roce}), {{0, 0}});
  expect_pairs(with_ports({east, west}), with_ports({west, east}), {{0, 1}, {1, 0}});
  expect_pairs(with_ports({east, roce, old}), with_ports({old, roce, west}), {{1, 1}, {2, 0}});
  expect_pairs(with_ports({east}), with_ports({west, roce}), {});
}

}  // namespace
}  // namespace tutti::verbs
