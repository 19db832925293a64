#include <deque>
#include <optional>
#include <random>

#include "tests/conformance/channel_conformance.h"
#include "tests/support/poisoned.h"

namespace tutti::conformance {
namespace {

void expect_alive(World& world, std::uint64_t sequence) {
  for (const std::size_t bytes : {8u, 5000u}) {
    for (int from : {0, 1}) {
      Send send(bytes, collective(sequence), from);
      Recv recv(bytes, from, collective(sequence));
      world[1 - from].post(recv);
      world[from].post(1 - from, send);
      ASSERT_TRUE(recv.wait().ok() && send.wait().ok()) << recv.status.to_string() << send.status.to_string();
      EXPECT_TRUE(recv.holds(from));
      ++sequence;
    }
  }
}

// Each round cancels a send a little later than the round before, so that more of its data has
// moved. After a send has ended, its memory is not read any more. Other messages still arrive, even
// if the receive of the cancelled message has failed.
TEST_P(ChannelFailures, CancelledSends) {
  World world(GetParam(), 2, {.small_buffers = true, .limits = tiny});
  std::uint64_t sequence = 0;
  for (const std::size_t bytes : {100u, 3000u, 400'000u}) {
    for (int spins = 0; spins < 12; ++spins) {
      Send send(bytes, collective(sequence), 1), beside(3000, collective(sequence, 1), 2);
      Recv recv(bytes, 0, collective(sequence)), beside_recv(3000, 0, collective(sequence, 1));
      world[1].post(recv);
      world[1].post(beside_recv);
      world[0].post(1, send);
      world[0].post(1, beside);
      for (int i = 0; i < spins; ++i) world[i % 2].driver.progress();
      bool taken_back = false;
      world[0].drive([&] {
        if (send.over.load() != 0) return;
        world[0].mesh.cancel(send, 1, gave_up);
        taken_back = true;
      });
      EXPECT_EQ(send.wait().code(), taken_back ? Code::timeout : Code::ok);
      std::fill(send.memory.begin(), send.memory.end(), std::byte{0xee});
      const test::Poisoned untouchable(send.memory);
      ASSERT_TRUE(beside_recv.wait().ok() && beside.wait().ok());
      EXPECT_TRUE(beside_recv.holds(2));
      // The receive still waits if the send was cancelled before the message was announced.
      world[1].drive([&] {
        if (recv.over.load() == 0) world[1].mesh.cancel(recv, gave_up);
      });
      if (recv.wait().ok()) {
        EXPECT_TRUE(recv.holds(1));
      } else {
        EXPECT_EQ(recv.status.code(), Code::timeout);
      }
      EXPECT_EQ(send.completions, 1);
      EXPECT_EQ(recv.completions, 1);
      ++sequence;
    }
  }
  expect_alive(world, sequence);
}

TEST_P(ChannelFailures, CancelledReceives) {
  World world(GetParam(), 2, {.small_buffers = true, .limits = tiny});
  std::uint64_t sequence = 0;
  for (const std::size_t bytes : {100u, 3000u, 400'000u}) {
    for (int spins = 0; spins < 12; ++spins) {
      Send send(bytes, collective(sequence), 1), beside(3000, collective(sequence, 1), 2);
      Recv recv(bytes, 0, collective(sequence)), beside_recv(3000, 0, collective(sequence, 1));
      world[1].post(recv);
      world[1].post(beside_recv);
      world[0].post(1, send);
      world[0].post(1, beside);
      for (int i = 0; i < spins; ++i) world[i % 2].driver.progress();
      world[1].drive([&] {
        if (recv.over.load() == 0) world[1].mesh.cancel(recv, gave_up);
      });
      recv.wait();
      EXPECT_EQ(recv.completions, 1);
      const std::vector<std::byte> before = recv.memory;
      std::optional<test::Poisoned> untouchable(recv.memory);
      ASSERT_TRUE(beside_recv.wait().ok() && beside.wait().ok());
      // The message still waits for a receive if the receive was cancelled before the message
      // arrived.
      world[0].drive([&] {
        if (send.over.load() == 0 && recv.channel == nullptr) world[0].mesh.cancel(send, 1, gave_up);
      });
      send.wait();
      EXPECT_EQ(send.completions, 1);
      untouchable.reset();
      EXPECT_EQ(recv.memory, before) << "touched after its end";
      ++sequence;
    }
  }
  expect_alive(world, sequence);
}

TEST_P(ChannelFailures, AnotherCallIsAMismatch) {
  for (const bool early : {true, false}) {
    World world(GetParam(), 2);
    // Rank 0 calls broadcast. Rank 1 calls all_reduce, and notices the difference.
    const Fingerprint broadcast{
        .kind = CollectiveKind::broadcast, .type = DataType::float32, .root = 1, .count = 2};
    world[1].context.issued = false;
    if (!early) world[1].context.operations[7] = {usual_call(), false};
    Send send(8, collective(7), 1), other(8, collective(8), 1);
    send.header.call = broadcast;
    world[0].post(1, send);
    world[0].post(1, other);
    ASSERT_TRUE(send.wait().ok() && other.wait().ok());
    if (early) {
      // The broadcast has arrived, but rank 1 has not issued operation 7 yet.
      Recv marker(0, 0, user(1));
      Send marker_send(0, user(1), 0);
      world[1].post(marker);
      world[0].post(1, marker_send);
      ASSERT_TRUE(marker.wait().ok() && marker_send.wait().ok());
      world[1].drive([&] {
        EXPECT_TRUE(world[1].context.mismatches.empty());
        world[1].context.operations[7] = {usual_call(), false};
        world[1].mesh.on_issued(test_context, 7);
      });
    }
    ASSERT_TRUE(world[1].until([&] { return !world[1].context.mismatches.empty(); }));
    world[1].drive([&] {
      const auto& mismatch = world[1].context.mismatches.front();
      EXPECT_EQ(mismatch.peer, 0);
      EXPECT_EQ(mismatch.sequence, 7u);
      EXPECT_EQ(mismatch.why.code(), Code::mismatch);
      EXPECT_EQ(mismatch.why.message(),
                "rank 0 (host host0, pid 1000) called broadcast(count=2, float32, root=1) as operation 7, "
                "where rank 1 (host host1, pid 1001) called all_reduce(count=64, uint8, sum)");
    });
  }
}

TEST_P(ChannelFailures, AnotherLengthIsAMismatch) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{200'000}}) {
    World world(GetParam(), 2);
    Send send(bytes, collective(7), 1);
    Recv recv(8, 0, collective(7));
    if (bytes == 0) world[1].post(recv);
    world[0].post(1, send);
    if (bytes != 0) world[1].post(recv);
    EXPECT_EQ(recv.wait().code(), Code::mismatch);
    EXPECT_TRUE(send.wait().ok());
    world[1].drive([&] {
      ASSERT_EQ(world[1].context.mismatches.size(), 1u);
      EXPECT_EQ(world[1].context.mismatches[0].why.message(),
                "rank 0 (host host0, pid 1000) sent " + std::to_string(bytes) +
                    " bytes in operation 7, all_reduce(count=64, uint8, sum), where "
                    "rank 1 (host host1, pid 1001) expects 8");
    });
    expect_alive(world, 20);
  }
}

TEST_P(ChannelFailures, AMessageForAFinishedOperation) {
  World world(GetParam(), 2);
  world[1].context.operations[7] = {usual_call(), true};
  Send send(8, collective(7), 1);
  world[0].post(1, send);
  ASSERT_TRUE(world[1].until([&] { return !world[1].context.mismatches.empty(); }));
  world[1].drive([&] {
    EXPECT_NE(world[1].context.mismatches[0].why.message().find("had already finished"), std::string::npos);
  });
  EXPECT_TRUE(send.wait().ok());
}

// A user message that is too long makes only the receive for this message fail.
TEST_P(ChannelFailures, Truncation) {
  World world(GetParam(), 2, {.limits = tiny});
  for (const std::size_t bytes : {100u, 5000u}) {
    for (const bool early : {false, true}) {
      Send send(bytes, user(1), 1);
      Recv recv(50, any_source, user(1));
      if (early) world[1].post(recv);
      world[0].post(1, send);
      if (!early) world[1].post(recv);
      EXPECT_EQ(recv.wait().code(), Code::mismatch);
      EXPECT_EQ(recv.source, 0);
      EXPECT_TRUE(send.wait().ok());
    }
  }
  expect_alive(world, 0);
  world[1].drive([&] { EXPECT_TRUE(world[1].context.mismatches.empty()); });
}

TEST_P(ChannelFailures, AbortIsTold) {
  World world(GetParam(), 3);
  expect_alive(world, 0);
  // Rank 2 has no connection yet, so rank 0 sends it no abort.
  world[0].drive([&] {
    world[0].mesh.abort(test_context, {0, 1, 2}, Status(Code::timeout, "rank 2 is late", 2));
  });
  ASSERT_TRUE(world[1].until([&] { return !world[1].context.aborts.empty(); }));
  world[1].drive([&] {
    const Status& why = world[1].context.aborts[0];
    EXPECT_EQ(why.to_string(), "timeout: rank 2 is late");
    EXPECT_EQ(why.peer(), 2);
  });
  expect_alive(world, 10);
}

// Rank 0 aborts many contexts to which rank 1 does not belong. Then the abort of another context
// arrives before rank 1 has attached to that context.
TEST_P(ChannelFailures, AbortBeforeItsContext) {
  World world(GetParam(), 2);
  expect_alive(world, 0);
  world[1].drive([&] {
    const Status why(Code::aborted, "not this one", 0);
    for (std::uint32_t context = 100; context < 3000; ++context) world[1].mesh.on_abort(0, context, why);
  });
  world[0].drive([&] { world[0].mesh.abort(5, {1}, Status(Code::aborted, "too bad", 0)); });
  expect_alive(world, 10);
  TestContext late;
  world[1].drive([&] { world[1].mesh.attach(5, late); });
  ASSERT_TRUE(world[1].until([&] { return !late.aborts.empty(); }));
  world[1].drive([&] { world[1].mesh.detach(5); });
}

// Every operation of a living rank with a dead rank fails, sooner or later. Operations between living ranks
// continue.
TEST_P(ChannelFailures, LostPeer) {
  World world(GetParam(), 3, {.small_buffers = true, .limits = tiny});
  expect_alive(world, 0);
  {
    Send greeting(8, user(9), 1);
    Recv greeting_recv(8, 2, user(9));
    world[0].post(greeting_recv);
    world[2].post(0, greeting);
    ASSERT_TRUE(greeting_recv.wait().ok() && greeting.wait().ok());
  }
  Recv posted(8, 1, collective(20)), tagged(8, 1, user(1)), any(8, any_source, user(2));
  Send large(1'000'000, collective(21), 1), unclaimed(5000, collective(22), 1);
  for (Recv* recv : {&posted, &tagged, &any}) world[0].post(*recv);
  Recv half(1'000'000, 0, collective(21));
  world[1].post(half);
  world[0].post(1, large);
  world[0].post(1, unclaimed);
  world[1].crash();
  for (const Status& status : {posted.wait(), tagged.wait(), large.wait(), unclaimed.wait()}) {
    EXPECT_EQ(status.code(), Code::peer_lost) << status.to_string();
    EXPECT_EQ(status.peer(), 1);
    EXPECT_NE(status.message().find("rank 1 (host host1, pid 1001)"), std::string::npos)
        << status.to_string();
  }
  EXPECT_EQ(half.wait().code(), Code::internal);
  ASSERT_TRUE(world[0].until([&] { return world[0].context.downs.count(1) == 1; }));
  Send later(8, collective(23), 1);
  Recv later_recv(8, 1, collective(23));
  world[0].post(1, later);
  world[0].post(later_recv);
  EXPECT_EQ(later.wait().code(), Code::peer_lost);
  EXPECT_EQ(later_recv.wait().code(), Code::peer_lost);
  EXPECT_EQ(any.over.load(), 0u) << "another peer may still send";
  Send other(8, user(2), 1);
  world[2].post(0, other);
  EXPECT_TRUE(any.wait().ok() && other.wait().ok());
}

// A rank that leaves does not count as crashed. The messages that it sent before can still be
// received.
TEST_P(ChannelFailures, Goodbye) {
  World world(GetParam(), 2);
  Send small(8, collective(0), 1);
  world[0].post(1, small);
  ASSERT_TRUE(small.wait().ok());
  Recv pending(8, 0, collective(5));
  world[1].post(pending);
  world[0].shut_down();
  EXPECT_EQ(pending.wait().code(), Code::aborted);
  EXPECT_NE(pending.status.message().find("rank 0 (host host0, pid 1000) has left"), std::string::npos);
  Recv recv(8, 0, collective(0)), later(8, 0, collective(1));
  world[1].post(recv);
  EXPECT_TRUE(recv.wait().ok());
  EXPECT_TRUE(recv.holds(1));
  world[1].post(later);
  EXPECT_EQ(later.wait().code(), Code::aborted);
  world[1].drive([&] { EXPECT_EQ(world[1].context.downs[0].code(), Code::aborted); });
}

// All ranks leave while messages are in flight. Each operation ends exactly once, and no rank waits long.
TEST_P(ChannelFailures, ShutdownWithThingsInFlight) {
  for (int round = 0; round < 5; ++round) {
    World world(GetParam(), 4, {.small_buffers = true, .limits = tiny});
    std::deque<Send> sends[4];
    std::deque<Recv> recvs[4];
    world.each([&](Node& node) {
      const auto me = static_cast<std::size_t>(node.mesh.rank());
      for (int peer = 0; peer < 4; ++peer) {
        for (std::uint64_t i = 0; i < 6; ++i) {
          const std::size_t bytes = i % 2 == 0 ? 100 : 200'000;
          if (i != 2) node.post(recvs[me].emplace_back(bytes, peer, collective(i)));
          if (i != 3) node.post(peer, sends[me].emplace_back(bytes, collective(i), 1));
        }
      }
      const Deadline limit = Deadline::after(std::chrono::minutes(1));
      node.mesh.shutdown(limit);
      EXPECT_FALSE(limit.expired()) << "a peer waits for an answer that never comes";
      for (Send& send : sends[me]) EXPECT_EQ(send.completions, 1);
      for (Recv& recv : recvs[me]) EXPECT_EQ(recv.completions, 1);
    });
  }
}

// Only the other ranks of the job can connect, and only by a transport that this rank uses.
TEST_P(ChannelFailures, StrangersAreRefused) {
  World world(GetParam(), 2);
  expect_alive(world, 0);
  const auto fixture = GetParam()();
  fixture->new_world();
  const auto other = fixture->create(0, false, {});
  world[0].drive([&] {
    Mesh& mesh = world[0].mesh;
    for (const int rank : {-1, 0, 2, 1'000'000}) EXPECT_EQ(mesh.on_incoming(rank, *other), nullptr);
    EXPECT_EQ(mesh.on_incoming(1, *other), nullptr) << "not the transport that this peer uses";
  });
}

TEST_P(ChannelFailures, NobodyReachesThePeer) {
  Driver driver{DriverOptions{}};
  const auto fixture = GetParam()();
  fixture->new_world();
  MeshOptions options;
  options.transports.push_back(fixture->create(0, false, {}));
  options.peers = {PeerInfo{0, "here", 1, "", 0, {}}, PeerInfo{1, "there", 2, "", 0, {}}};
  Mesh mesh(driver, std::move(options));
  TestContext context;
  Send send(8, collective(0), 1);
  Recv recv(8, 1, collective(0));
  send.driver = recv.driver = &driver;
  {
    DriverGuard guard(driver);
    ASSERT_TRUE(mesh.start().ok());
    mesh.attach(test_context, context);
    mesh.recv(recv);
    mesh.send(1, send);
    EXPECT_EQ(mesh.transport_name(1), "none");
  }
  EXPECT_EQ(send.wait().code(), Code::unreachable);
  EXPECT_NE(send.status.message().find("rank 1 (host there, pid 2)"), std::string::npos)
      << send.status.to_string();
  EXPECT_NE(send.status.message().find(fixture->name() + ": "), std::string::npos);
  EXPECT_EQ(recv.wait().code(), Code::unreachable);
  mesh.shutdown(patience());
}

}  // namespace
}  // namespace tutti::conformance
