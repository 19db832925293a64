// Tests channels that use several ports: how the ports share the work, and what happens when one of them
// breaks.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/channel_world.h"
#include "tests/verbs/provider/provider.h"
#include "tests/verbs/registered_message.h"
#include "transport/verbs/devices.h"
#include "transport/verbs/factory.h"

namespace tutti::verbs {
namespace {

using conformance::collective;
using conformance::Node;
using conformance::Recv;
using conformance::Send;
using conformance::World;
using provider::ethernet_device;
using provider::make_gid;
using provider::Provider;
using provider::Record;

constexpr MessageLimits limits{.eager = 4096, .credit = 256 * 1024, .fragment = 16 * 1024};

// Rank 0 has the devices a0 and a1, and rank 1 has b0 and b1.
std::vector<provider::DeviceSettings> four_devices() {
  return {ethernet_device("a0", "10.0.0.1"), ethernet_device("a1", "10.0.1.1"),
          ethernet_device("b0", "10.0.0.2"), ethernet_device("b1", "10.0.1.2")};
}

class TwoRails final : public conformance::TransportFixture {
 public:
  std::string name() const override { return "verbs"; }
  std::unique_ptr<tutti::Transport> create(int rank, bool, const MessageLimits& limits) override {
    Options options;
    options.functions = &Provider::functions();
    options.settings.devices = rank == 0 ? "a" : "b";
    options.probe_interval = std::chrono::milliseconds(20);
    options.probe_timeout = std::chrono::milliseconds(200);
    options.limits = limits;
    return verbs::create(options).take();
  }
};

std::unique_ptr<conformance::TransportFixture> make_two_rails() { return std::make_unique<TwoRails>(); }

// `RailedRanks` is two ranks with two rails between them. Its destructor checks that no object is left in the
// provider, and that the provider has recorded no mistake.
struct RailedRanks {
  explicit RailedRanks(const std::vector<provider::DeviceSettings>& devices = four_devices())
      : provider(devices),
        world(std::make_unique<World>(&make_two_rails, 2, conformance::WorldOptions{.limits = limits})) {}
  ~RailedRanks() {
    world.reset();
    const Record record = provider.record();
    EXPECT_EQ(record.counts, provider::Counts{});
    EXPECT_THAT(record.mistakes, testing::IsEmpty());
    EXPECT_EQ(record.traffic.not_ready, 0u);
  }

  // Moves a message of that size each way, between buffers that are registered or not.
  void exchange(std::uint64_t sequence, std::size_t bytes, bool registered) {
    world->each([&](Node& node) {
      const int peer = 1 - node.mesh.rank();
      Send send(bytes, collective(sequence), node.mesh.rank());
      Recv recv(bytes, peer, collective(sequence));
      std::vector<std::unique_ptr<RegisteredMemory>> sent, received;
      if (registered) {
        sent = node.mesh.add_memory(send.memory).take();
        received = node.mesh.add_memory(recv.memory).take();
      }
      node.post(recv);
      node.post(peer, send);
      ASSERT_TRUE(recv.wait().ok()) << recv.status.to_string();
      ASSERT_TRUE(send.wait().ok()) << send.status.to_string();
      EXPECT_TRUE(recv.holds(peer));
    });
  }
  // Waits until the second rail carries payloads.
  void wait_for_both_rails() {
    for (std::uint64_t sequence = 1'000'000; written("a1") == 0 || written("b1") == 0; ++sequence)
      exchange(sequence, 128 * 1024, true);
  }
  std::uint64_t written(const std::string& device) { return provider.record().written[device]; }

  Provider provider;
  std::unique_ptr<World> world;
};

class VerbsRails : public testing::TestWithParam<bool> {};

TEST_P(VerbsRails, ShareThePayloads) {
  RailedRanks pair;
  pair.wait_for_both_rails();
  const Record before = pair.provider.record();
  constexpr std::size_t bytes = 16 << 20;
  pair.exchange(1, bytes, GetParam());
  for (const char* const device : {"a0", "a1", "b0", "b1"})
    EXPECT_GE(pair.written(device) - before.written.at(device), bytes * 4 / 10) << device;
}

// Only the first rail carries packets.
TEST_P(VerbsRails, SmallMessagesUseOneRail) {
  RailedRanks pair;
  pair.wait_for_both_rails();
  const Record before = pair.provider.record();
  for (std::uint64_t sequence = 1; sequence <= 10; ++sequence) pair.exchange(sequence, 8, GetParam());
  const Record after = pair.provider.record();
  EXPECT_EQ(after.written, before.written);
  EXPECT_LE(after.traffic.sends - before.traffic.sends, 24u);
}

// Each round pulls a cable at a different moment: while the ranks connect, in the middle of small or large
// messages, or later. Either the last request or only its answer is lost. Not all cables have the same
// moments.
TEST_P(VerbsRails, ACableMayBePulledAtAnyMoment) {
  int first = 0;
  for (const char* const device : {"a0", "a1", "b0", "b1"}) {
    for (const bool answer_lost : {false, true}) {
      for (int moment = 1 + first++ % 3; moment < 100; moment += 1 + moment / 4) {
        SCOPED_TRACE(std::string(device) + " after " + std::to_string(moment) +
                     " requests, answer lost: " + std::to_string(answer_lost));
        RailedRanks pair;
        pair.exchange(1, 8, false);
        pair.provider.unplug_after(device, moment, answer_lost);
        for (std::uint64_t sequence = 2; sequence < 8; ++sequence) {
          pair.exchange(2 * sequence, 300'000, GetParam());
          pair.exchange(2 * sequence + 1, 3000, GetParam());
        }
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(VerbsRails, TheOtherRailCarriesEverythingOnceOneIsGone) {
  RailedRanks pair;
  pair.wait_for_both_rails();
  pair.provider.break_pairs("a0");
  pair.exchange(1, 8, GetParam());
  const Record before = pair.provider.record();
  constexpr std::size_t bytes = 1 << 20;
  pair.exchange(2, bytes, GetParam());
  EXPECT_EQ(pair.written("a0"), before.written.at("a0"));
  EXPECT_EQ(pair.written("a1") - before.written.at("a1"), bytes);
  EXPECT_EQ(pair.written("b1") - before.written.at("b1"), bytes);
}

INSTANTIATE_TEST_SUITE_P(Memory, VerbsRails, testing::Bool(), [](const auto& memory) {
  return std::string(memory.param ? "Registered" : "Unregistered");
});

// A receive into registered memory has a memory window on each rail. It registers nothing, and its keys end
// with it.
TEST(VerbsRailKeys, LastAsLongAsTheReceive) {
  RailedRanks pair;
  pair.wait_for_both_rails();
  constexpr std::size_t bytes = 1 << 20;
  RegisteredMessage message(*pair.world, bytes, 1);
  const Record before = pair.provider.record();
  ASSERT_NO_FATAL_FAILURE(message.exchange());
  const Record after = pair.provider.record();
  EXPECT_EQ(after.traffic.registrations, before.traffic.registrations);
  EXPECT_EQ(after.traffic.binds - before.traffic.binds, 2u);
  EXPECT_EQ(after.traffic.invalidations - before.traffic.invalidations, 2u);
  std::ranges::fill(message.recv.memory, std::byte{0xee});
  const std::vector<std::byte> then = message.recv.memory;
  pair.provider.write_as(after.last_write, std::vector<std::byte>(64, std::byte{0xbb}));
  EXPECT_TRUE(pair.provider.is_broken(after.last_write.pair));
  EXPECT_TRUE(message.recv.memory == then);
}

// Calls `harm`, which breaks all remaining rails, while both ranks wait for a message. Expects that both
// ranks lose their peer.
void expect_loss(RailedRanks& pair, const std::function<void()>& harm) {
  Recv at_0(8, 1, collective(2)), at_1(8, 0, collective(2));
  (*pair.world)[0].post(at_0);
  (*pair.world)[1].post(at_1);
  harm();
  EXPECT_EQ(at_0.wait().code(), Code::peer_lost) << at_0.status.to_string();
  EXPECT_EQ(at_1.wait().code(), Code::peer_lost) << at_1.status.to_string();
}

TEST(VerbsLastRail, ItsLossIsTheLossOfThePeer) {
  RailedRanks pair;
  pair.wait_for_both_rails();
  expect_loss(pair, [&] {
    pair.provider.break_pairs("a0");
    pair.provider.break_pairs("b1");
  });
}

TEST(VerbsLastRail, RemovedDevicesAreTheLossOfThePeer) {
  RailedRanks pair;
  pair.wait_for_both_rails();
  expect_loss(pair, [&] {
    pair.provider.remove("b0");
    pair.provider.remove("b1");
  });
}

TEST(VerbsLastRail, AnotherPortOfTheDeviceIsNotConcerned) {
  std::vector<provider::DeviceSettings> devices = four_devices();
  devices[0].vendor = soft_roce_vendor;
  devices[0].ports.push_back(devices[1].ports[0]);
  devices.erase(devices.begin() + 1);
  RailedRanks pair(devices);
  pair.exchange(1, 8, false);
  for (std::uint64_t sequence = 2; pair.written("b1") == 0; ++sequence)
    pair.exchange(sequence, 128 * 1024, true);
  pair.provider.set_port("a0", 2, IBV_PORT_DOWN);
  pair.exchange(1000, 1 << 20, true);
  expect_loss(pair, [&] { pair.provider.set_port("a0", 1, IBV_PORT_DOWN); });
}

// The ranks connect over the second rail, since nothing passes over the first one.
TEST(VerbsFirstRail, MayBeDeadFromTheStart) {
  Provider provider(four_devices());
  for (const char* const prefix : {"::ffff:", "fe80::"})
    provider.cut(make_gid(prefix + std::string("10.0.0.1")), make_gid(prefix + std::string("10.0.0.2")));
  World world(&make_two_rails, 2);
  world.each([](Node& node) {
    const int peer = 1 - node.mesh.rank();
    Send send(1 << 20, collective(1), node.mesh.rank());
    Recv recv(1 << 20, peer, collective(1));
    node.post(recv);
    node.post(peer, send);
    EXPECT_TRUE(recv.wait().ok() && send.wait().ok()) << recv.status.to_string();
    EXPECT_TRUE(recv.holds(peer));
  });
  EXPECT_GT(provider.record().written["a1"], 0u);
  EXPECT_EQ(provider.record().written["a0"], 0u);
}

// The rank with fewer ports limits the number of rails.
TEST(VerbsFirstRail, IsTheOnlyOneIfAPeerHasNoOther) {
  std::vector<provider::DeviceSettings> devices = four_devices();
  devices.pop_back();
  RailedRanks pair(devices);
  pair.exchange(1, 1 << 20, true);
  EXPECT_EQ(pair.written("a0"), std::uint64_t{1} << 20);
  EXPECT_EQ(pair.written("a1"), 0u);
}

}  // namespace
}  // namespace tutti::verbs
