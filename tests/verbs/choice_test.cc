// Tests that two ranks with verbs and tcp choose the same transport, whatever is wrong with their devices.
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/channel_world.h"
#include "tests/verbs/provider/provider.h"
#include "transport/tcp/factory.h"
#include "transport/verbs/factory.h"

namespace tutti::verbs {
namespace {

using conformance::collective;
using conformance::Node;
using conformance::Recv;
using conformance::Send;
using provider::ethernet_device;
using provider::make_gid;
using provider::Provider;

// `Ranks` are ranks that have tcp and, if their device can be used, verbs. Rank r uses `devices[r]`.
class Ranks {
 public:
  explicit Ranks(const std::vector<std::string>& devices) {
    std::vector<std::vector<std::unique_ptr<tutti::Transport>>> transports(devices.size());
    std::vector<PeerInfo> peers;
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
      Options options;
      options.functions = &Provider::functions();
      options.settings.devices = "=" + devices[rank];
      options.probe_interval = std::chrono::milliseconds(20);
      if (auto made = create(options); made.ok()) transports[rank].push_back(std::move(made).take());
      transports[rank].push_back(tcp::create({}).take());
      PeerInfo info{static_cast<int>(rank), "host", 1000 + static_cast<int>(rank), "boot", 1, {}};
      for (const auto& each : transports[rank]) info.addresses[std::string(each->name())] = each->address();
      peers.push_back(info);
    }
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
      MeshOptions mesh;
      mesh.rank = static_cast<int>(rank);
      mesh.peers = peers;
      mesh.transports = std::move(transports[rank]);
      nodes_.push_back(std::make_unique<Node>(std::move(mesh), true));
    }
  }
  ~Ranks() {
    std::vector<std::thread> threads;
    for (const auto& node : nodes_) threads.emplace_back([&node] { node->shut_down(); });
    for (std::thread& thread : threads) thread.join();
  }

  // Moves a message each way, and returns the name of the transport that both ranks have used.
  std::string transport_between(int one, int other) {
    Node &first = *nodes_[static_cast<std::size_t>(one)], &second = *nodes_[static_cast<std::size_t>(other)];
    Send to_second(8, collective(1), 1), to_first(8, collective(1), 2);
    Recv at_first(8, other, collective(1)), at_second(8, one, collective(1));
    first.post(at_first);
    second.post(at_second);
    first.post(other, to_second);
    second.post(one, to_first);
    EXPECT_TRUE(at_first.wait().ok()) << at_first.status.to_string();
    EXPECT_TRUE(at_second.wait().ok()) << at_second.status.to_string();
    EXPECT_TRUE(to_first.wait().ok() && to_second.wait().ok());
    EXPECT_TRUE(at_first.holds(2) && at_second.holds(1));
    std::string name;
    first.drive([&] { name = first.mesh.transport_name(other); });
    second.drive([&] { EXPECT_EQ(second.mesh.transport_name(one), name); });
    return name;
  }

 private:
  std::vector<std::unique_ptr<Node>> nodes_;
};

std::vector<provider::DeviceSettings> three_devices() {
  return {ethernet_device("fake0", "10.0.0.1"), ethernet_device("fake1", "10.0.0.2"),
          ethernet_device("fake2", "10.0.0.3")};
}

TEST(VerbsChoice, IsVerbsIfBothRanksCan) {
  const Provider provider(three_devices());
  Ranks ranks({"fake0", "fake1"});
  EXPECT_EQ(ranks.transport_between(0, 1), "verbs");
}

TEST(VerbsChoice, IsTcpIfOneRankHasNoDevice) {
  const Provider provider(three_devices());
  Ranks ranks({"fake0", "none"});
  EXPECT_EQ(ranks.transport_between(0, 1), "tcp");
}

TEST(VerbsChoice, IsTcpIfAPortIsDown) {
  std::vector<provider::DeviceSettings> devices = three_devices();
  devices[1].ports[0].state = IBV_PORT_DOWN;
  const Provider provider(devices);
  Ranks ranks({"fake0", "fake1"});
  EXPECT_EQ(ranks.transport_between(0, 1), "tcp");
}

// An iWARP device is listed like a RoCE device, but its queue pairs connect in another way.
TEST(VerbsChoice, IsTcpIfADeviceIsNotRoce) {
  std::vector<provider::DeviceSettings> devices = three_devices();
  devices[1].transport = IBV_TRANSPORT_IWARP;
  const Provider provider(devices);
  Ranks ranks({"fake0", "fake1"});
  EXPECT_EQ(ranks.transport_between(0, 1), "tcp");
}

// The device has no room for the completions of even one connection.
TEST(VerbsChoice, IsTcpIfADeviceHasNoResources) {
  for (const std::size_t poor : {0, 1}) {
    std::vector<provider::DeviceSettings> devices = three_devices();
    devices[poor].max_completions = 32;
    const Provider provider(devices);
    Ranks ranks({"fake0", "fake1"});
    EXPECT_EQ(ranks.transport_between(0, 1), "tcp");
  }
}

TEST(VerbsChoice, IsTcpIfNoAddressCanBeRead) {
  std::vector<provider::DeviceSettings> devices = three_devices();
  devices[1].ports[0].gids = {provider::unreadable_gid(ENODATA), provider::Gid{}};
  const Provider provider(devices);
  Ranks ranks({"fake0", "fake1"});
  EXPECT_EQ(ranks.transport_between(0, 1), "tcp");
}

// No request fails, but no packet arrives either. Both ranks answer over TCP meanwhile.
TEST(VerbsChoice, IsTcpIfPacketsVanish) {
  Provider provider(three_devices());
  Ranks ranks({"fake0", "fake1"});
  provider.hold();
  EXPECT_EQ(ranks.transport_between(0, 1), "tcp");
}

TEST(VerbsChoice, IsTcpIfRequestsFail) {
  Provider provider(three_devices());
  for (const char* const prefix : {"::ffff:", "fe80::"})
    provider.cut(make_gid(prefix + std::string("10.0.0.1")), make_gid(prefix + std::string("10.0.0.2")));
  Ranks ranks({"fake0", "fake1"});
  EXPECT_EQ(ranks.transport_between(0, 1), "tcp");
}

// The attempt to reach rank 1 shows that no packet arrives at fake1. So rank 0 sends no packet to rank 2,
// which also uses fake1.
TEST(VerbsChoice, TriesAPathThatIsDeadOnlyOnce) {
  Provider provider(three_devices());
  Ranks ranks({"fake0", "fake1", "fake1"});
  provider.hold();
  EXPECT_EQ(ranks.transport_between(0, 1), "tcp");
  const std::uint64_t before = provider.record().traffic.sends;
  EXPECT_GT(before, 0u);
  EXPECT_EQ(ranks.transport_between(0, 2), "tcp");
  EXPECT_EQ(provider.record().traffic.sends, before);
}

// Only ranks 0 and 1 cannot reach each other, so all other pairs use verbs.
TEST(VerbsChoice, IsMadeForEachPair) {
  Provider provider(three_devices());
  for (const char* const prefix : {"::ffff:", "fe80::"})
    provider.cut(make_gid(prefix + std::string("10.0.0.1")), make_gid(prefix + std::string("10.0.0.2")));
  Ranks ranks({"fake0", "fake1", "fake2"});
  EXPECT_EQ(ranks.transport_between(0, 1), "tcp");
  EXPECT_EQ(ranks.transport_between(0, 2), "verbs");
  EXPECT_EQ(ranks.transport_between(1, 2), "verbs");
}

}  // namespace
}  // namespace tutti::verbs
