#include "bindings/cpp/waiting.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tutti {
namespace {

using namespace std::chrono_literals;

// Returns `ranks` ranks on each of `hosts` hosts, all of which are on one machine.
std::vector<PeerInfo> ranks_on(int hosts, int ranks) {
  std::vector<PeerInfo> peers;
  for (int host = 0; host < hosts; ++host) {
    for (int rank = 0; rank < ranks; ++rank) {
      PeerInfo& peer = peers.emplace_back();
      peer.rank = host * ranks + rank;
      peer.host = "host-" + std::to_string(host);
      peer.boot_id = "machine";
    }
  }
  return peers;
}

DriverOptions waiting_on(int hosts, int ranks, Cores cores) {
  const std::vector<PeerInfo> peers = ranks_on(hosts, ranks);
  return waiting_of(peers.front(), peers, cores, 50us);
}

TEST(Waiting, ARankWithACoreOfItsOwnSpins) {
  for (const int hosts : {1, 2}) {
    const DriverOptions options = waiting_on(hosts, 2, {.of_rank = 2, .of_machine = 4});
    EXPECT_EQ(options.spin, 50us);
    EXPECT_FALSE(options.short_slices);
  }
}

TEST(Waiting, RanksOfAHostThatShareCoresDoNotSpin) {
  const DriverOptions options = waiting_on(1, 4, {.of_rank = 2, .of_machine = 8});
  EXPECT_EQ(options.spin, 0ns);
  EXPECT_EQ(options.yield, DriverOptions{}.yield);
  EXPECT_FALSE(options.short_slices);
}

TEST(Waiting, RanksOfHostsThatShareCoresYieldForLongerInShortSlices) {
  const DriverOptions options = waiting_on(4, 2, {.of_rank = 2, .of_machine = 2});
  EXPECT_EQ(options.spin, 0ns);
  EXPECT_GT(options.yield, DriverOptions{}.yield);
  EXPECT_TRUE(options.short_slices);
}

TEST(Waiting, OtherMachinesDoNotCount) {
  std::vector<PeerInfo> peers = ranks_on(4, 2);
  for (PeerInfo& peer : peers) peer.boot_id = peer.host;
  const DriverOptions options = waiting_of(peers.front(), peers, {.of_rank = 2, .of_machine = 2}, 50us);
  EXPECT_EQ(options.spin, 50us);
  EXPECT_FALSE(options.short_slices);
}

}  // namespace
}  // namespace tutti
