// Tests what the conformance tests do not cover: calls of MPI that fail, a peer that is hostile or does not
// answer, and the end of MPI. The MPI is the tests' fake.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/channel_world.h"
#include "tests/support/joined_mpi.h"
#include "transport/mpi/address.h"
#include "transport/mpi/factory.h"
#include "transport/mpi/inbox.h"
#include "transport/mpi/outbox.h"
#include "transport/mpi/packet.h"
#include "transport/stream/frame.h"
#include "transport/tcp/factory.h"

namespace tutti::mpi {
namespace {

using conformance::collective;
using conformance::Node;
using conformance::Recv;
using conformance::Send;
using ::testing::HasSubstr;

constexpr std::uint64_t world_number = 1;
constexpr std::uint32_t packet_bytes = 1024;

// A `Mode` is what goes wrong in the fake.
class Mode {
 public:
  explicit Mode(const char* mode) { setenv("FAKE_MPI", mode, 1); }
  ~Mode() { unsetenv("FAKE_MPI"); }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;
};

// Rank 0 is a normal rank. Rank 1 is the test itself. Only the test's thread drives.
class MpiPeer : public ::testing::Test {
 protected:
  MpiPeer() {
    peers = {PeerInfo{0, "host0", 1000, "boot", 1, {}}, PeerInfo{1, "host1", 1001, "boot", 1, {}}};
    Options options;
    options.messenger = messenger.get();
    options.packet_bytes = packet_bytes;
    transport = create(options).take();
    theirs = *parse_address(transport->address());
    peers[0].addresses["mpi"] = transport->address();
    const Address own{world_number, messenger->rank(), messenger->take_tag().take(), 99, {}};
    EXPECT_TRUE(inbox.open(own.tag).ok());
    peers[1].addresses["mpi"] = format(own);
  }
  ~MpiPeer() override {
    unsetenv("FAKE_MPI");
    if (rank) rank->shut_down();
  }
  // Starts rank 0. It can use TCP, too, if `second` is set.
  void start(std::chrono::nanoseconds connect_timeout = std::chrono::seconds(30), bool second = false) {
    MeshOptions options;
    options.rank = 0;
    options.connect_timeout = connect_timeout;
    options.transports.push_back(std::move(transport));
    if (second) {
      options.transports.push_back(tcp::create({}).take());
      peers[1].addresses["tcp"] = tcp::create({}).take()->address();
    }
    options.peers = peers;
    rank.emplace(std::move(options), true, false);
  }
  PacketHead head(PacketKind kind) const {
    PacketHead head;
    head.kind = kind;
    head.from = 1;
    head.nonce = 99;
    head.window = 4;
    head.packet_bytes = packet_bytes;
    return head;
  }
  void say(const PacketHead& head, std::span<const std::byte> payload = {}) {
    const std::span<std::byte> memory = outbox.memory();
    std::memcpy(memory.data(), &head, sizeof head);
    std::copy(payload.begin(), payload.end(), memory.begin() + sizeof head);
    EXPECT_TRUE(outbox.send(sizeof head + payload.size(), theirs.rank, theirs.tag).ok());
  }
  // Waits for the next packet of rank 0.
  PacketHead hear() {
    std::optional<PacketHead> heard;
    EXPECT_TRUE(rank->until([&] {
      const auto packet = inbox.next().take();
      if (!packet) return false;
      heard = head_of(*packet);
      EXPECT_TRUE(inbox.repost().ok());
      return true;
    }));
    return heard.value_or(PacketHead{});
  }
  Status until_down() {
    EXPECT_TRUE(rank->until([this] { return !rank->context.downs.empty(); }));
    return rank->context.downs[1];
  }

  std::unique_ptr<Messenger> messenger = test::JoinedMpi::instance().messenger(world_number);
  Inbox inbox{*messenger, 4, packet_bytes};
  Outbox outbox{*messenger, packet_bytes};
  std::unique_ptr<Transport> transport;
  Address theirs;
  std::vector<PeerInfo> peers;
  std::optional<Node> rank;
};

TEST_F(MpiPeer, CanSend) {
  start();
  say(head(PacketKind::hello));
  EXPECT_EQ(hear().kind, PacketKind::hello);
  Recv recv(8, 1, collective(1));
  rank->post(recv);
  FrameHeader header;
  header.type = FrameType::eager;
  header.payload = 8;
  header.message = {collective(1), conformance::usual_call(), 8};
  EncodedFrameHeader encoded;
  encode(header, encoded);
  std::vector<std::byte> frame(encoded.begin(), encoded.end()), payload(8);
  Send::fill(payload, 3);
  frame.insert(frame.end(), payload.begin(), payload.end());
  say(head(PacketKind::frame), frame);
  EXPECT_TRUE(recv.wait().ok());
  EXPECT_TRUE(recv.holds(3));
}

TEST_F(MpiPeer, ThatDoesNotAnswerIsUnreachable) {
  start(std::chrono::milliseconds(50));
  Send send(8, collective(1), 1);
  rank->post(1, send);
  EXPECT_EQ(send.wait().code(), Code::unreachable);
  EXPECT_THAT(send.status.message(), HasSubstr("rank 1 (host host1, pid 1001) has not answered"));
}

TEST_F(MpiPeer, ThatRefusesIsReachedByTheNextTransport) {
  start(std::chrono::seconds(30), true);
  Send send(8, collective(1), 1);
  rank->post(1, send);
  EXPECT_EQ(hear().kind, PacketKind::hello);
  constexpr std::string_view why = "a reason";
  say(head(PacketKind::refusal), std::as_bytes(std::span(why)));
  EXPECT_TRUE(rank->until([this] { return rank->mesh.transport_name(1) == "tcp"; }));
  rank->drive([&] { rank->mesh.cancel(send, 1, conformance::gave_up); });
  send.wait();
}

TEST_F(MpiPeer, ThatBreaksTheProtocolIsFoundOut) {
  start();
  PacketHead hello = head(PacketKind::hello);
  hello.window = 0;
  say(hello);
  EXPECT_EQ(until_down().code(), Code::protocol_error);
}

TEST_F(MpiPeer, ThatSendsNoFrameIsFoundOut) {
  start();
  say(head(PacketKind::hello));
  const std::vector<std::byte> noise(200, std::byte{0x5a});
  say(head(PacketKind::frame), noise);
  EXPECT_EQ(until_down().code(), Code::protocol_error);
}

TEST_F(MpiPeer, ThatCountsPacketsWronglyIsFoundOut) {
  start();
  say(head(PacketKind::hello));
  PacketHead credit = head(PacketKind::credit);
  credit.taken = 1;
  say(credit);
  EXPECT_EQ(until_down().code(), Code::protocol_error);
}

TEST_F(MpiPeer, ThatEndsWithoutAGoodbyeIsLost) {
  start();
  say(head(PacketKind::hello));
  say(head(PacketKind::end));
  EXPECT_EQ(until_down().code(), Code::peer_lost);
  EXPECT_FALSE(messenger->close()) << "a rank that is lost does not come to MPI_Finalize";
}

// This rank may learn of the loss from a rank that is connected with the lost one.
TEST_F(MpiPeer, MpiIsNotFinalizedAfterTheLossOfAnyRank) {
  start();
  rank->drive([this] { rank->mesh.on_abort(1, 5, Status(Code::timeout, "late", 1)); });
  rank->drive([this] { rank->mesh.on_abort(1, 5, Status(Code::peer_lost, "gone", 1)); });
  EXPECT_FALSE(messenger->close());
}

TEST_F(MpiPeer, ThatLeavesBeforeItSaysGoodbyeIsNotLost) {
  start();
  say(head(PacketKind::hello));
  say(head(PacketKind::left));
  EXPECT_EQ(until_down().code(), Code::aborted);
}

TEST_F(MpiPeer, MessagesOfStrangersAreDropped) {
  start();
  PacketHead stranger = head(PacketKind::hello);
  stranger.nonce = 98;
  say(stranger);
  stranger = head(PacketKind::hello);
  stranger.from = 7;
  say(stranger);
  stranger = head(PacketKind::hello);
  stranger.magic = 0;
  say(stranger);
  say(head(PacketKind::hello));
  EXPECT_EQ(hear().kind, PacketKind::hello);
  EXPECT_TRUE(rank->context.downs.empty());
}

TEST_F(MpiPeer, AFailedSendIsToldWithMpisOwnText) {
  start();
  const Mode mode("send_fails");
  Send send(8, collective(1), 1);
  rank->post(1, send);
  EXPECT_EQ(send.wait().code(), Code::peer_lost);
  EXPECT_THAT(send.status.message(), HasSubstr("MPI_Isend fails: the fake's error 16"));
}

TEST_F(MpiPeer, AFailedReceiveEndsAllChannels) {
  start();
  Recv recv(8, 1, collective(1));
  rank->post(recv);
  const Mode mode("test_fails");
  EXPECT_EQ(recv.wait().code(), Code::peer_lost);
  EXPECT_THAT(recv.status.message(), HasSubstr("the fake's error 16"));
  EXPECT_FALSE(messenger->close()) << "MPI must not be finalized after a failure";
}

TEST_F(MpiPeer, WithoutReceivesTheTransportDoesNotStart) {
  Driver driver{DriverOptions{}};
  MeshOptions options;
  options.transports.push_back(std::move(transport));
  options.peers = peers;
  Mesh mesh(driver, std::move(options));
  const DriverGuard guard(driver);
  const Mode mode("receive_fails");
  EXPECT_THAT(mesh.start().message(), HasSubstr("MPI_Irecv fails: the fake's error 16"));
}

TEST_F(MpiPeer, AnMpiThatKeepsMemoryIsNotFinalized) {
  start();
  const Mode mode("cancel_hangs");
  rank.reset();
  EXPECT_FALSE(messenger->close());
}

TEST_F(MpiPeer, AClosedMessengerEndsAllChannels) {
  start();
  Recv recv(8, 1, collective(1));
  rank->post(recv);
  EXPECT_TRUE(messenger->close());
  EXPECT_EQ(recv.wait().code(), Code::peer_lost);
  EXPECT_THAT(recv.status.message(), HasSubstr("MPI is finalized"));
}

TEST(MpiMessenger, GivesEachTagOnce) {
  const auto messenger = test::JoinedMpi::instance().messenger();
  for (int tag = 0; tag <= largest_tag; ++tag) ASSERT_EQ(messenger->take_tag().take(), tag);
  EXPECT_EQ(messenger->take_tag().status().code(), Code::resource_exhausted);
}

TEST(MpiMessenger, AnotherWorldIsNotReached) {
  const auto here = test::JoinedMpi::instance().messenger(1),
             there = test::JoinedMpi::instance().messenger(2);
  Options options;
  options.messenger = here.get();
  const auto own = create(options).take();
  options.messenger = there.get();
  const auto other = create(options).take();
  const PeerInfo peer{1, "host1", 1001, "boot", 1, {{"mpi", other->address()}}};
  EXPECT_EQ(own->can_reach(peer).code(), Code::unreachable);
  EXPECT_THAT(own->can_reach(peer).message(), HasSubstr("another MPI world"));
}

// The fake ends the program if two threads call it at once.
TEST(MpiMessenger, OnlyOneThreadAtATimeCallsMpi) {
  const Mode mode("serialized");
  const auto messenger = test::JoinedMpi::instance().messenger();
  std::vector<PeerInfo> peers;
  std::vector<std::unique_ptr<Transport>> transports;
  for (int i = 0; i < 2; ++i) {
    Options options;
    options.messenger = messenger.get();
    transports.push_back(create(options).take());
    peers.push_back({i, "host", 1000 + i, "boot", 1, {{"mpi", transports.back()->address()}}});
  }
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 2; ++i) {
    MeshOptions options;
    options.rank = i;
    options.peers = peers;
    options.transports.push_back(std::move(transports[static_cast<std::size_t>(i)]));
    nodes.push_back(std::make_unique<Node>(std::move(options), true));
  }
  for (std::uint64_t i = 0; i < 200; ++i) {
    Send send(3000, collective(i), 1), back(3000, collective(i), 2);
    Recv recv(3000, 0, collective(i)), back_recv(3000, 1, collective(i));
    nodes[1]->post(recv);
    nodes[0]->post(back_recv);
    nodes[0]->post(1, send);
    nodes[1]->post(0, back);
    ASSERT_TRUE(recv.wait().ok() && back_recv.wait().ok() && send.wait().ok() && back.wait().ok());
  }
  nodes.clear();
}

TEST(MpiAddress, SurvivesItsText) {
  const Address address{0x5b1c0f3de2a49786, 3, 17, 99, {1, 2048, 4096}};
  const auto parsed = parse_address(format(address));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(format(*parsed), format(address));
  for (const char* const text :
       {"", "5b1c0f3de2a49786", "5b1c0f3de2a49786/3/17/0000000000000063",
        "x/3/17/0000000000000063/1,2048,4096", "5b1c0f3de2a49786/-1/17/0000000000000063/1,2048,4096",
        "5b1c0f3de2a49786/3/40000/0000000000000063/1,2048,4096"})
    EXPECT_FALSE(parse_address(text).has_value()) << text;
}

}  // namespace
}  // namespace tutti::mpi
