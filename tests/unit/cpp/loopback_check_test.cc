#include "bindings/cpp/loopback_check.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using ::testing::HasSubstr;

// Returns a rank whose control connections are accepted at `endpoint`, such as "10.0.0.1:4711".
PeerInfo rank_at(int rank, const std::string& host, const std::string& endpoint) {
  PeerInfo info;
  info.rank = rank;
  info.host = host;
  info.boot_id = "boot of " + host;
  info.addresses["control"] = endpoint + "/8c1f00d2b5a69e37/4026531836/123456";
  return info;
}

TEST(LoopbackCheck, RanksOfOneHostMayUseLoopback) {
  EXPECT_TRUE(check_loopback({rank_at(0, "a", "127.0.0.1:1")}).ok());
  EXPECT_TRUE(check_loopback({rank_at(0, "a", "127.0.0.1:1"), rank_at(1, "a", "[::1]:2")}).ok());
}

TEST(LoopbackCheck, RanksOfSeveralHostsMayUseOtherAddresses) {
  EXPECT_TRUE(check_loopback({rank_at(0, "a", "10.0.0.1:1"), rank_at(1, "b", "[fd00::1]:2")}).ok());
  EXPECT_TRUE(check_loopback({rank_at(0, "a", "gate.example:1"), rank_at(1, "b", "10.0.0.2:2")}).ok());
}

TEST(LoopbackCheck, ARankThatOthersCannotReachIsNamed) {
  for (const std::string loopback : {"127.0.0.1", "127.0.1.1", "::1", "localhost"}) {
    const std::string endpoint = (loopback == "::1" ? "[::1]" : loopback) + ":2";
    const Status status = check_loopback(
        {rank_at(0, "a", "10.0.0.1:1"), rank_at(1, "b", "10.0.0.2:1"), rank_at(2, "b", endpoint)});
    EXPECT_EQ(status.code(), Code::unreachable);
    EXPECT_EQ(status.peer(), 2);
    for (const std::string& part :
         {std::string("rank 2 (host b, pid 0) advertises the address " + loopback),
          std::string("rank 0 (host a, pid 0) cannot reach it"),
          std::string("On host b, set TUTTI_SOCKET_IFNAME"), std::string("TUTTI_ADVERTISE_ADDRESS")})
      EXPECT_THAT(status.message(), HasSubstr(part));
  }
}

TEST(LoopbackCheck, TwoNetworkNamespacesOfOneHostAreTwoHosts) {
  PeerInfo other = rank_at(1, "a", "10.0.0.1:2");
  other.network_namespace = 7;
  EXPECT_FALSE(check_loopback({rank_at(0, "a", "127.0.0.1:1"), other}).ok());
}

// This check ignores damaged addresses, since ranks refuse such addresses later, when they use them.
TEST(LoopbackCheck, ADamagedAddressIsNotItsConcern) {
  PeerInfo damaged = rank_at(1, "b", "127.0.0.1:2");
  damaged.addresses["control"] = "127.0.0.1";
  EXPECT_TRUE(check_loopback({rank_at(0, "a", "10.0.0.1:1"), damaged}).ok());
}

}  // namespace
}  // namespace tutti
