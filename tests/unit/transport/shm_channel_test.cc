#include <cstring>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/unit/transport/shm_world.h"
#include "transport/shm/pipe.h"
#include "transport/stream/frame.h"
#include "transport/tcp/factory.h"

namespace tutti::shm {
namespace {

using conformance::collective;
using conformance::Recv;
using conformance::Send;
using ::testing::HasSubstr;

// Rank 0 is a normal rank. Rank 1 is the test itself, which shares a pipe with rank 0 and may
// misuse it.
class ShmPeer : public ::testing::Test {
 protected:
  ShmPeer() {
    raw.send(connect_note(world, 1, 0, ring), {pipe->descriptor(), bell.get()});
    Note note;
    EXPECT_EQ(raw.receive(note), 0);
    EXPECT_EQ(note.kind, NoteKind::welcome);
    EXPECT_TRUE(pipe->is_proved());
    EXPECT_EQ(raw.descriptors.size(), 1u);
    pipe->set_rope(BellRope::from(std::move(raw.descriptors[0])));
    note.kind = NoteKind::go;
    raw.send(note);
  }
  void write(const FrameHeader& header, std::span<const std::byte> payload = {}) {
    EncodedFrameHeader bytes;
    encode(header, bytes);
    std::memcpy(pipe->out().room().data(), bytes.data(), bytes.size());
    pipe->out().advance(bytes.size());
    if (!payload.empty()) std::memcpy(pipe->out().room().data(), payload.data(), payload.size());
    pipe->out().advance(payload.size());
    pipe->out().publish();
    pipe->wake_peer();
  }
  Status until_down() {
    EXPECT_TRUE(world[0].until([this] { return !world[0].context.downs.empty(); }));
    return world[0].context.downs[1];
  }

  static constexpr std::size_t ring = 4096;
  World world{1, format(Address{"unused", geteuid(), 99})};
  std::unique_ptr<Pipe> pipe = Pipe::create(ring, proof).take();
  RawBell bell;
  RawPeer raw{world.peers[0].addresses["shm"]};
};

TEST_F(ShmPeer, CanSend) {
  Recv recv(8, 1, collective(1));
  world[0].post(recv);
  FrameHeader header;
  header.type = FrameType::eager;
  header.payload = 8;
  header.message = {collective(1), conformance::usual_call(), 8};
  std::vector<std::byte> payload(8);
  Send::fill(payload, 3);
  write(header, payload);
  EXPECT_TRUE(recv.wait().ok());
  EXPECT_TRUE(recv.holds(3));
}

TEST_F(ShmPeer, WithAnImpossibleTailIsFoundOut) {
  // A stray write could leave such a tail. The tail is far ahead, but is still a whole number of
  // cache lines.
  for (int i = 0; i < 3; ++i) pipe->out().advance(ring);
  pipe->out().publish();
  pipe->wake_peer();
  EXPECT_EQ(until_down().code(), Code::protocol_error);
}

TEST_F(ShmPeer, WithAnImpossibleHeadIsFoundOut) {
  pipe->in().advance(std::size_t{1} << 40);
  pipe->in().release();
  // These messages exceed the ring, so rank 0 has to read the head.
  std::vector<std::unique_ptr<Send>> sends;
  for (std::uint64_t i = 0; i < 100; ++i) {
    sends.push_back(std::make_unique<Send>(100, collective(i), 1));
    world[0].post(1, *sends.back());
  }
  EXPECT_EQ(until_down().code(), Code::protocol_error);
}

TEST_F(ShmPeer, ThatWritesNonsenseIsFoundOut) {
  std::memset(pipe->out().room().data(), 0x55, 256);
  pipe->out().advance(256);
  pipe->out().publish();
  pipe->wake_peer();
  const Status why = until_down();
  EXPECT_EQ(why.code(), Code::protocol_error);
  EXPECT_THAT(why.message(), HasSubstr("rank 1 (host host1, pid 1001)"));
  EXPECT_TRUE(raw.is_closed());
}

TEST_F(ShmPeer, ThatDiesIsLost) {
  Recv recv(8, 1, collective(1));
  world[0].post(recv);
  raw.close();
  EXPECT_EQ(recv.wait().code(), Code::peer_lost);
  EXPECT_THAT(recv.status.message(), HasSubstr("rank 1 (host host1, pid 1001)"));
  EXPECT_EQ(until_down().peer(), 1);
}

TEST_F(ShmPeer, WhatItWroteBeforeItsDeathIsRead) {
  Recv recv(0, 1, collective(1));
  world[0].post(recv);
  FrameHeader header;
  header.type = FrameType::eager;
  header.message = {collective(1), conformance::usual_call(), 0};
  EncodedFrameHeader bytes;
  encode(header, bytes);
  std::memcpy(pipe->out().room().data(), bytes.data(), bytes.size());
  pipe->out().advance(bytes.size());
  pipe->out().publish();  // wakes no rank
  raw.close();
  EXPECT_TRUE(recv.wait().ok());
  EXPECT_EQ(until_down().code(), Code::peer_lost);
}

// An `EndlessPeer` writes a message as soon as its previous message has been read.
struct EndlessPeer : Recv {
  static constexpr std::uint64_t most = 1'000'000;
  Node& node;
  const std::function<void(std::uint64_t)> write;
  std::uint64_t count = 0;

  EndlessPeer(Node& at, std::function<void(std::uint64_t)> next)
      : Recv(0, 1, collective(0)), node(at), write(std::move(next)) {
    done = [](RecvOp& op, const Status& status) {
      auto& self = static_cast<EndlessPeer&>(op);
      if (status.ok() && ++self.count < most) self.go_on();
    };
  }
  void go_on() {
    tag = collective(count);
    node.mesh.recv(*this);
    write(count);
  }
};

TEST_F(ShmPeer, ThatWritesOnAfterItsDeathIsLost) {
  EndlessPeer peer(world[0], [&](std::uint64_t number) {
    FrameHeader header;
    header.type = FrameType::eager;
    header.message = {collective(number), conformance::usual_call(), 0};
    write(header);
  });
  world[0].drive([&] {
    peer.go_on();
    raw.close();
  });
  EXPECT_EQ(until_down().code(), Code::peer_lost);
  EXPECT_LT(peer.count, EndlessPeer::most);
}

TEST_F(ShmPeer, CannotConnectTwice) {
  Send sent(8, collective(1), 0);
  world[0].post(1, sent);
  ASSERT_TRUE(sent.wait().ok());  // so rank 0 uses the first connection
  auto again = Pipe::create(ring, proof).take();
  RawPeer second(world.peers[0].addresses["shm"]);
  second.send(connect_note(world, 1, 0, ring), {again->descriptor(), bell.get()});
  Note note;
  ASSERT_EQ(second.receive(note), 0);
  EXPECT_EQ(note.kind, NoteKind::refused);
  EXPECT_TRUE(second.is_closed());
  EXPECT_TRUE(world[0].context.downs.empty());
}

// The peer has given up its first attempt, and rank 0 may not have noticed that yet.
TEST(ShmRetry, APeerThatConnectsAgainIsWelcome) {
  constexpr std::size_t ring = 4096;
  World world(1, format(Address{"unused", geteuid(), 99}));
  const RawBell bell;
  const auto pipe = Pipe::create(ring, proof).take(), again = Pipe::create(ring, proof).take();
  RawPeer first(world.peers[0].addresses["shm"]), second(world.peers[0].addresses["shm"]);
  Note note;
  first.send(connect_note(world, 1, 0, ring), {pipe->descriptor(), bell.get()});
  ASSERT_EQ(first.receive(note), 0);
  EXPECT_EQ(note.kind, NoteKind::welcome);
  second.send(connect_note(world, 1, 0, ring), {again->descriptor(), bell.get()});
  ASSERT_EQ(second.receive(note), 0);
  EXPECT_EQ(note.kind, NoteKind::welcome);
  EXPECT_TRUE(again->is_proved());
  EXPECT_TRUE(first.is_closed());
}

// --- tests in which shared memory does not work between the ranks ---

// `BothWays` has two ranks with both shm and tcp. A test can give either rank a false shm address of the
// other.
struct BothWays {
  std::vector<std::unique_ptr<Transport>> shm, tcp;
  std::vector<PeerInfo> peers;
  std::vector<std::unique_ptr<Node>> nodes;

  BothWays() {
    for (int rank = 0; rank < 2; ++rank) {
      shm.push_back(create({}).take());
      tcp.push_back(tcp::create({}).take());
      peers.push_back(peer_info(rank, shm.back()->address()));
      peers.back().addresses["tcp"] = tcp.back()->address();
    }
  }
  ~BothWays() {
    std::thread other([this] { nodes[1]->shut_down(); });
    nodes[0]->shut_down();
    other.join();
  }
  // Returns a false shm address of `rank`: the address of another listener, but with the nonce of `rank`.
  // With this nonce, the other rank still recognizes `rank` when `rank` connects.
  std::string misled_to(const std::string& listener, int rank) const {
    Address address = published_by(peers[static_cast<std::size_t>(rank)]).value();
    address.name = listener;
    return format(address);
  }
  // Starts a rank. If `belief` is not empty, this rank takes it for the shm address of the other rank.
  void start(int rank, const std::string& belief = {}) {
    const auto place = static_cast<std::size_t>(rank);
    MeshOptions options;
    options.rank = rank;
    options.peers = peers;
    if (!belief.empty()) options.peers[1 - place].addresses["shm"] = belief;
    options.transports.push_back(std::move(shm[place]));
    options.transports.push_back(std::move(tcp[place]));
    nodes.push_back(std::make_unique<Node>(std::move(options), true));
  }
  std::string transport_at(int rank) {
    std::string name;
    nodes[static_cast<std::size_t>(rank)]->drive(
        [&] { name = nodes[static_cast<std::size_t>(rank)]->mesh.transport_name(1 - rank); });
    return name;
  }
  void expect_exchange() {
    std::vector<std::unique_ptr<Send>> sends;
    std::vector<std::unique_ptr<Recv>> recvs;
    for (int from = 0; from < 2; ++from) {
      for (std::uint64_t i = 0; i < 10; ++i) {
        const std::size_t bytes = i % 2 == 0 ? 100 : 200'000;
        sends.push_back(std::make_unique<Send>(bytes, collective(i), from));
        recvs.push_back(std::make_unique<Recv>(bytes, from, collective(i)));
        nodes[static_cast<std::size_t>(1 - from)]->post(*recvs.back());
        nodes[static_cast<std::size_t>(from)]->post(1 - from, *sends.back());
      }
    }
    for (std::size_t i = 0; i < sends.size(); ++i) {
      EXPECT_TRUE(sends[i]->wait().ok()) << sends[i]->status.to_string();
      EXPECT_TRUE(recvs[i]->wait().ok()) << recvs[i]->status.to_string();
      EXPECT_TRUE(recvs[i]->holds(i < 10 ? 0 : 1));
      EXPECT_EQ(sends[i]->completions, 1);
    }
  }
};

TEST(ShmFallback, IsNotNeededWhereAllIsWell) {
  BothWays world;
  world.start(0);
  world.start(1);
  world.expect_exchange();
  EXPECT_EQ(world.transport_at(0), "shm");
  EXPECT_EQ(world.transport_at(1), "shm");
}

// Rank 0 is refused, falls back to tcp, and sends its queued messages over tcp. Rank 1 must also
// fall back, although no message tells it to do so.
TEST(ShmFallback, WhoIsRefusedTakesTheOtherAlong) {
  const std::string name = "tutti-test-fallback-" + std::to_string(getpid());
  const Descriptor listener = listen_local(name).take();
  BothWays world;
  world.start(0, world.misled_to(name, 1));
  world.start(1);
  Send send(300'000, collective(100), 7), other(10, collective(101), 8);
  Recv recv(300'000, 0, collective(100)), second(10, 0, collective(101));
  world.nodes[0]->post(1, send);
  world.nodes[0]->post(1, other);
  pollfd readable{listener.get(), POLLIN, 0};
  ASSERT_EQ(poll(&readable, 1, 30'000), 1);
  int error = 0;
  RawPeer raw(accept_local(listener.get(), error));
  Note note;
  ASSERT_EQ(raw.receive(note), 0);
  ASSERT_EQ(note.kind, NoteKind::connect);
  ASSERT_EQ(raw.descriptors.size(), 2u);
  note.kind = NoteKind::refused;
  note.why.set(Status(Code::resource_exhausted, "no address space"));
  raw.send(note);
  world.nodes[1]->post(recv);
  world.nodes[1]->post(second);
  EXPECT_TRUE(send.wait().ok()) << send.status.to_string();
  EXPECT_TRUE(other.wait().ok()) << other.status.to_string();
  EXPECT_TRUE(recv.wait().ok() && recv.holds(7)) << recv.status.to_string();
  EXPECT_TRUE(second.wait().ok() && second.holds(8)) << second.status.to_string();
  world.expect_exchange();
  EXPECT_EQ(world.transport_at(0), "tcp");
  EXPECT_EQ(world.transport_at(1), "tcp");
}

// Rank 0 cannot map the memory that it receives. It reports the failure to rank 1 and falls back to
// tcp. Rank 1 also falls back when rank 0 contacts it over tcp.
TEST(ShmFallback, WhoCannotMapFallsBack) {
  BothWays world;
  World names(0);
  names.peers = world.peers;
  world.start(0);
  world.start(1);
  RawPeer raw(world.peers[0].addresses["shm"]);
  const RawBell bell;
  const Descriptor memory(memfd_create("unsealed", MFD_CLOEXEC));
  raw.send(connect_note(names, 1, 0, 4096), {memory.get(), bell.get()});
  Note note;
  ASSERT_EQ(raw.receive(note), 0);
  EXPECT_EQ(note.kind, NoteKind::refused);
  EXPECT_THAT(note.why.failure(0).message(), HasSubstr("not sealed"));
  world.expect_exchange();
  EXPECT_EQ(world.transport_at(0), "tcp");
  EXPECT_EQ(world.transport_at(1), "tcp");
}

// The other side has not written the right proof into the segment that rank 0 made. So rank 0 falls
// back and tells the other side.
TEST(ShmFallback, WhoMapsOtherMemoryIsTold) {
  const std::string name = "tutti-test-proof-" + std::to_string(getpid());
  const Descriptor listener = listen_local(name).take();
  BothWays world;
  world.start(0, world.misled_to(name, 1));
  world.start(1);
  Recv recv(8, 1, collective(1));
  world.nodes[0]->post(recv);  // receiving makes rank 0 connect
  pollfd readable{listener.get(), POLLIN, 0};
  ASSERT_EQ(poll(&readable, 1, 30'000), 1);
  int error = 0;
  RawPeer raw(accept_local(listener.get(), error));
  Note note;
  ASSERT_EQ(raw.receive(note), 0);
  const RawBell bell;
  note.kind = NoteKind::welcome;
  raw.send(note, {bell.get()});
  ASSERT_EQ(raw.receive(note), 0);
  EXPECT_EQ(note.kind, NoteKind::refused);
  Send send(8, collective(1), 4);
  world.nodes[1]->post(0, send);
  EXPECT_TRUE(recv.wait().ok() && recv.holds(4)) << recv.status.to_string();
  EXPECT_EQ(world.transport_at(0), "tcp");
  EXPECT_EQ(world.transport_at(1), "tcp");
}

TEST(ShmFallback, OtherHostsAndNamespacesAreNotReached) {
  auto transport = create({}).take();
  World world(1, transport->address());
  PeerInfo other = world.peers[1];
  EXPECT_TRUE(transport->can_reach(other).ok());
  auto judge = [&](const PeerInfo& peer) {
    Status status;
    // The transport must belong to a node, so that it knows its own rank when it judges `peer`.
    MeshOptions options;
    options.peers = {world.peers[0], peer};
    options.transports.push_back(create({}).take());
    Node node(std::move(options), true);
    Send send(1, collective(1), 1);
    node.post(1, send);
    return send.wait();
  };
  other.network_namespace = 2;
  EXPECT_THAT(judge(other).message(), HasSubstr("another network namespace"));
  other = world.peers[1];
  other.boot_id = "other";
  EXPECT_THAT(judge(other).message(), HasSubstr("another host"));
  other = world.peers[1];
  other.addresses["shm"] = format(Address{"name", geteuid() + 1, 1});
  EXPECT_THAT(judge(other).message(), HasSubstr("another user"));
  other.addresses.clear();
  EXPECT_THAT(judge(other).message(), HasSubstr("no usable shm address"));
}

}  // namespace
}  // namespace tutti::shm
