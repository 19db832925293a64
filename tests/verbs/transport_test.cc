// Tests the transport on devices that fail, on ports with the addresses of real clusters, and with little
// memory. Also tests that the transport posts and registers no more than it should.
#include "transport/verbs/transport.h"

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/channel_world.h"
#include "tests/verbs/provider/provider.h"
#include "tests/verbs/registered_message.h"
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
using testing::HasSubstr;

// Rank r uses the device "fake<r>".
Options options_of(int rank) {
  Options options;
  options.functions = &Provider::functions();
  options.settings.devices = "=fake" + std::to_string(rank);
  options.probe_timeout = std::chrono::seconds(1);
  return options;
}

class Fixture final : public conformance::TransportFixture {
 public:
  std::string name() const override { return "verbs"; }
  std::unique_ptr<tutti::Transport> create(int rank, bool, const MessageLimits& limits) override {
    Options options = options_of(rank);
    options.limits = limits;
    return verbs::create(options).take();
  }
};

std::unique_ptr<conformance::TransportFixture> make_fixture() { return std::make_unique<Fixture>(); }

std::vector<provider::DeviceSettings> two_devices() {
  return {ethernet_device("fake0", "10.0.0.1"), ethernet_device("fake1", "10.0.0.2")};
}

// Moves a message each way.
void exchange(World& world, std::uint64_t sequence, std::size_t bytes = 8) {
  world.each([&](Node& node) {
    const int peer = 1 - node.mesh.rank();
    Send send(bytes, collective(sequence), node.mesh.rank());
    Recv recv(bytes, peer, collective(sequence));
    node.post(recv);
    node.post(peer, send);
    ASSERT_TRUE(recv.wait().ok() && send.wait().ok()) << recv.status.to_string() << send.status.to_string();
    EXPECT_TRUE(recv.holds(peer));
  });
}

// A `Pair` is two connected ranks. Its destructor checks that no object is left in the provider, and that the
// provider has recorded no mistake.
class Pair {
 public:
  explicit Pair(const std::vector<provider::DeviceSettings>& devices = two_devices()) : provider(devices) {
    world = std::make_unique<World>(&make_fixture, 2);
    exchange(*world, 1);
  }
  ~Pair() {
    world.reset();
    const Record record = provider.record();
    EXPECT_EQ(record.counts, provider::Counts{});
    EXPECT_THAT(record.mistakes, testing::IsEmpty());
    EXPECT_EQ(record.traffic.not_ready, 0u);
    EXPECT_EQ(record.traffic.unprepared, 0u) << "memory was registered before ibv_fork_init";
  }
  // Calls `harm` while both ranks wait for a message, and expects that both lose their peer. Returns the
  // error text of rank 0.
  std::string expect_loss(const std::function<void()>& harm) {
    Recv at_0(8, 1, collective(2)), at_1(8, 0, collective(2));
    (*world)[0].post(at_0);
    (*world)[1].post(at_1);
    harm();
    EXPECT_EQ(at_0.wait().code(), Code::peer_lost) << at_0.status.to_string();
    EXPECT_EQ(at_1.wait().code(), Code::peer_lost) << at_1.status.to_string();
    return at_0.status.message();
  }
  // Sends a small message from rank 0, which may get lost.
  void send() {
    Send send(8, collective(3), 1);
    (*world)[0].post(1, send);
    send.wait();
  }

  Provider provider;
  std::unique_ptr<World> world;
};

TEST(VerbsTransport, SmallMessagesAreSentInline) {
  Pair pair;
  const Record before = pair.provider.record();
  for (std::uint64_t sequence = 2; sequence < 12; ++sequence) exchange(*pair.world, sequence);
  const Record after = pair.provider.record();
  EXPECT_EQ(after.traffic.registrations, before.traffic.registrations);
  EXPECT_EQ(after.traffic.sends - before.traffic.sends, after.traffic.inlined - before.traffic.inlined);
  // Ten messages went each way. A few packets may have returned credit.
  EXPECT_GE(after.traffic.sends - before.traffic.sends, 20u);
  EXPECT_LE(after.traffic.sends - before.traffic.sends, 24u);
}

TEST(VerbsTransport, RegisteredMemoryIsNotRegisteredAgain) {
  Pair pair;
  constexpr std::size_t bytes = 1 << 20;
  RegisteredMessage message(*pair.world, bytes, 2);
  const Record before = pair.provider.record();
  ASSERT_NO_FATAL_FAILURE(message.exchange());
  EXPECT_EQ(message.to.counters().bytes_in_place, bytes);
  const Record after = pair.provider.record();
  EXPECT_EQ(after.traffic.registrations, before.traffic.registrations);
  EXPECT_GT(after.traffic.writes, before.traffic.writes);
}

// The last write of a piece tells the receiver that the piece is complete. So each piece takes one request
// and one receive.
TEST(VerbsTransport, ALargeMessageIsOneRequestAPiece) {
  Pair pair;
  constexpr std::size_t bytes = 4 << 20;
  constexpr std::uint64_t pieces = bytes / MessageLimits{}.fragment;
  RegisteredMessage message(*pair.world, bytes, 2);
  const Record before = pair.provider.record();
  ASSERT_NO_FATAL_FAILURE(message.exchange());
  const Record after = pair.provider.record();
  EXPECT_EQ(after.traffic.writes - before.traffic.writes, pieces);
  // The other requests announce the message, grant the memory by a window, revoke the grant, and return
  // credit.
  EXPECT_LE(after.traffic.sends - before.traffic.sends, pieces + 8);
  EXPECT_LE(after.traffic.receives - before.traffic.receives, pieces + 8);
}

TEST(VerbsTransport, AFailedSendIsTheLossOfThePeer) {
  Pair pair;
  const std::string why = pair.expect_loss([&] {
    pair.provider.fail_sends(1, IBV_WC_RETRY_EXC_ERR);
    pair.send();
  });
  EXPECT_THAT(why, HasSubstr("retry counter exceeded"));
}

// Only an event tells the ranks that their queue pair is broken: no completion fails.
TEST(VerbsTransport, ABrokenQueuePairIsTheLossOfThePeer) {
  Pair pair;
  pair.expect_loss([&] { pair.provider.break_pairs("fake0"); });
}

TEST(VerbsTransport, ARemovedDeviceIsTheLossOfThePeer) {
  Pair pair;
  pair.expect_loss([&] { pair.provider.remove("fake1"); });
}

// A descriptor that is ready for ever must not keep the driver busy.
TEST(VerbsTransport, ARemovedDeviceIsNotWatchedAnyMore) {
  Pair pair;
  pair.expect_loss([&] { pair.provider.remove("fake1"); });
  Node& node = (*pair.world)[1];
  for (int i = 0; i < 100; ++i) node.driver.progress();
  const std::uint64_t before = pair.provider.record().traffic.vain_reads;
  for (int i = 0; i < 100; ++i) node.driver.progress();
  EXPECT_EQ(pair.provider.record().traffic.vain_reads, before);
}

// Soft-RoCE does not always report that its requests have failed, so the lost link itself ends the
// connection.
TEST(VerbsTransport, ALostLinkOfSoftRoceIsTheLossOfThePeer) {
  std::vector<provider::DeviceSettings> devices = two_devices();
  for (provider::DeviceSettings& device : devices) device.vendor = soft_roce_vendor;
  Pair pair(devices);
  pair.provider.hold();
  pair.expect_loss([&] { pair.provider.set_port("fake1", 1, IBV_PORT_DOWN); });
}

// The device reports the events of all of its ports.
TEST(VerbsTransport, ALostLinkOfAnotherPortDoesNoHarm) {
  std::vector<provider::DeviceSettings> devices = two_devices();
  for (provider::DeviceSettings& device : devices) {
    device.vendor = soft_roce_vendor;
    device.ports.push_back(device.ports.front());
  }
  Pair pair(devices);
  pair.provider.set_port("fake1", 2, IBV_PORT_DOWN);
  for (int i = 0; i < 100; ++i) (*pair.world)[1].driver.progress();
  exchange(*pair.world, 2);
}

// A card repeats its packets for a while.
TEST(VerbsTransport, ALinkThatComesBackDoesNoHarm) {
  Pair pair;
  pair.provider.hold();
  pair.provider.set_port("fake1", 1, IBV_PORT_DOWN);
  for (int i = 0; i < 100; ++i) (*pair.world)[1].driver.progress();
  pair.provider.set_port("fake1", 1, IBV_PORT_ACTIVE);
  pair.provider.release();
  exchange(*pair.world, 2);
}

TEST(VerbsTransport, ACutLinkIsTheLossOfThePeer) {
  Pair pair;
  pair.expect_loss([&] {
    pair.provider.cut(make_gid("::ffff:10.0.0.1"), make_gid("::ffff:10.0.0.2"));
    pair.send();
  });
}

// `LargeMessage` is a message from rank 0 to rank 1 between registered buffers. Its write has been posted,
// but is held.
struct LargeMessage {
  explicit LargeMessage(Pair& pair) : from((*pair.world)[0]), to((*pair.world)[1]) {
    sent = from.mesh.add_memory(send.memory).take();
    received = to.mesh.add_memory(recv.memory).take();
    pair.provider.hold_writes();
    to.post(recv);
    from.post(1, send);
    EXPECT_TRUE(from.until([&] { return pair.provider.record().traffic.writes > 0; }));
  }

  static constexpr std::size_t bytes = 1 << 20;
  Node& from;
  Node& to;
  Send send{bytes, collective(2), 5};
  Recv recv{bytes, 0, collective(2)};
  std::vector<std::unique_ptr<RegisteredMemory>> sent, received;
};

// A small message waits behind the payloads that the card reads. So the card reads only four at a time.
TEST(VerbsTransport, FourPayloadsAreReadAtATime) {
  Pair pair;
  LargeMessage message(pair);
  for (int i = 0; i < 100; ++i) message.from.driver.progress();
  EXPECT_EQ(pair.provider.record().traffic.writes, 4u);
  pair.provider.release();
  ASSERT_TRUE(message.recv.wait().ok() && message.send.wait().ok());
  EXPECT_TRUE(message.recv.holds(5));
  EXPECT_EQ(pair.provider.record().traffic.writes, 8u);
}

// The card may still write into the memory, so a cancelled receive ends only when the write has ended.
TEST(VerbsTransport, AReceiveCancelledMidWriteEndsAfterTheWrite) {
  Pair pair;
  LargeMessage message(pair);
  message.to.drive([&] { message.to.mesh.cancel(message.recv, conformance::gave_up); });
  for (int i = 0; i < 100; ++i) message.to.driver.progress();
  EXPECT_EQ(message.recv.completions, 0);
  pair.provider.release();
  message.recv.wait();
  std::fill(message.recv.memory.begin(), message.recv.memory.end(), std::byte{0xee});
  const std::vector<std::byte> then = message.recv.memory;
  message.send.wait();
  exchange(*pair.world, 3);
  EXPECT_TRUE(message.recv.memory == then);
}

// A cancelled send, too, ends only once the card no longer reads its memory.
TEST(VerbsTransport, ASendCancelledMidWriteEndsAfterTheWrite) {
  Pair pair;
  LargeMessage message(pair);
  message.from.drive([&] { message.from.mesh.cancel(message.send, 1, conformance::gave_up); });
  for (int i = 0; i < 100; ++i) message.from.driver.progress();
  EXPECT_EQ(message.send.completions, 0);
  pair.provider.release();
  message.send.wait();
  message.to.drive([&] {
    if (message.recv.over.load() == 0) message.to.mesh.cancel(message.recv, conformance::gave_up);
  });
  message.recv.wait();
  exchange(*pair.world, 3);
}

// If the peer is gone, the write never ends by itself, so the queue pair must be destroyed.
TEST(VerbsTransport, MessagesMidWriteEndWithTheConnection) {
  Pair pair;
  LargeMessage message(pair);
  message.to.drive([&] { message.to.mesh.cancel(message.recv, conformance::gave_up); });
  pair.provider.break_pairs("fake0");
  EXPECT_FALSE(message.send.wait().ok());
  EXPECT_FALSE(message.recv.wait().ok());
  pair.provider.release();
}

// The table of addresses is like that of a container, which can read only its own interface's addresses.
TEST(VerbsTransport, SkipsAddressesThatCannotBeRead) {
  std::vector<provider::DeviceSettings> devices = two_devices();
  for (provider::DeviceSettings& device : devices) {
    const provider::Gid ipv4 = device.ports[0].gids[1];
    device.ports[0].gids = {provider::unreadable_gid(ENODATA), provider::unreadable_gid(EPERM),
                            make_gid("fe80::1", IBV_GID_TYPE_ROCE_V1), provider::Gid{}, ipv4};
  }
  const Pair pair(devices);
}

// Only an attempt shows that packets do not arrive at an address.
TEST(VerbsTransport, TriesTheNextKindOfAddress) {
  Provider provider(two_devices());
  provider.cut(make_gid("::ffff:10.0.0.1"), make_gid("::ffff:10.0.0.2"));
  World world(&make_fixture, 2);
  exchange(world, 1);
}

TEST(VerbsTransport, WorksWithLittleMemory) {
  std::vector<provider::DeviceSettings> devices = two_devices();
  for (provider::DeviceSettings& device : devices) device.memlock = 64 * 1024;
  Pair pair(devices);
  exchange(*pair.world, 2, 300'000);
}

TEST(VerbsTransport, NamesThePortThatIsDown) {
  std::vector<provider::DeviceSettings> devices = two_devices();
  devices[0].ports[0].state = IBV_PORT_DOWN;
  const Provider provider(devices);
  const auto made = create(options_of(0));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::unsupported);
  EXPECT_THAT(made.status().message(), HasSubstr("fake0 port 1: the port is down"));
  EXPECT_TRUE(create(options_of(1)).ok());
}

TEST(VerbsTransport, SaysThatThereIsNoDevice) {
  const Provider provider({});
  EXPECT_THAT(create(options_of(0)).status().message(), HasSubstr("there is no InfiniBand or RoCE device"));
}

TEST(VerbsTransport, RefusesToSendWhatMustBeEncrypted) {
  const Provider provider(two_devices());
  Options options = options_of(0);
  options.encrypted = true;
  EXPECT_THAT(create(options).status().message(), HasSubstr("would not be encrypted"));
}

}  // namespace
}  // namespace tutti::verbs
