#include <deque>
#include <optional>
#include <random>

#include <tutti/buffer.h>

#include "tests/conformance/channel_conformance.h"
#include "tests/support/poisoned.h"

// These tests run over transports that write into the peer's memory (docs/seams/grants.md).
namespace tutti::conformance {
namespace {

// `RegisteredRecv` receives into memory that it has registered with its rank's transports.
struct RegisteredRecv : Recv {
  RegisteredRecv(Node& node, std::size_t size, int from, const MessageTag& name)
      : Recv(size, from, name), registration(node.mesh.add_memory(memory).take()) {
    EXPECT_EQ(registration.size(), 1u);
  }
  std::vector<std::unique_ptr<RegisteredMemory>> registration;
};

constexpr std::size_t large_bytes = 16 << 20;

// Moves a small message in each direction, so that the two ranks are connected.
void connect(World& world) {
  world.each([](Node& node) {
    const int peer = 1 - node.mesh.rank();
    Send send(8, collective(1000), 1);
    Recv recv(8, peer, collective(1000));
    node.post(recv);
    node.post(peer, send);
    ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
  });
}

TEST_P(ChannelGrants, RegisteredMemoryIsWrittenInPlace) {
  World world(GetParam(), 2);
  Send send(large_bytes, collective(1), 1);
  RegisteredRecv recv(world[1], large_bytes, 0, collective(1));
  world[1].post(recv);
  world[0].post(1, send);
  ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
  EXPECT_TRUE(recv.holds(1));
  const ChannelCounters counters = world[1].counters();
  EXPECT_EQ(counters.bytes_in_place, large_bytes);
  EXPECT_EQ(counters.bytes_staged, 0u);
  EXPECT_EQ(counters.bytes_received, large_bytes);
  EXPECT_EQ(counters.messages_received, 1u);
  EXPECT_EQ(world[0].counters().bytes_sent, large_bytes);
}

TEST_P(ChannelGrants, ReductionsGoThroughStagingChunks) {
  World world(GetParam(), 2);
  Send send(large_bytes, collective(1), 1);
  RegisteredRecv recv(world[1], large_bytes, 0, collective(1));
  const Reducer reducer(DataType::int32, ReduceOp::sum);
  recv.sink.reducer = &reducer;
  recv.sink.local = send.memory.data();
  world[1].post(recv);
  world[0].post(1, send);
  ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
  std::vector<std::uint32_t> sent(large_bytes / 4), sum(large_bytes / 4);
  std::memcpy(sent.data(), send.memory.data(), large_bytes);
  std::memcpy(sum.data(), recv.memory.data(), large_bytes);
  for (std::uint32_t& each : sent) each *= 2;
  EXPECT_EQ(sum, sent);
  const ChannelCounters counters = world[1].counters();
  EXPECT_EQ(counters.bytes_in_place, 0u);
  EXPECT_EQ(counters.bytes_staged, large_bytes);
}

// Messages of many sizes go in both directions at once. Every second message is received into registered
// memory.
TEST_P(ChannelGrants, ManySizesBothWays) {
  World world(GetParam(), 2, {.small_buffers = true, .limits = tiny});
  const std::vector<std::size_t> sizes = {1, 256, 257, 1023, 1024, 1025, 4096, 4097, 9999, 65536, 300'001};
  world.each([&](Node& node) {
    const int peer = 1 - node.mesh.rank();
    std::deque<Send> sends;
    std::deque<RegisteredRecv> registered;
    std::deque<Recv> plain;
    for (std::size_t i = 0; i < 2 * sizes.size(); ++i) {
      const std::size_t bytes = sizes[i / 2];
      if (i % 2 == 0) {
        node.post(registered.emplace_back(node, bytes, peer, collective(i)));
      } else {
        node.post(plain.emplace_back(bytes, peer, collective(i)));
      }
      node.post(peer, sends.emplace_back(bytes, collective(i), static_cast<int>(i)));
    }
    for (Send& send : sends) ASSERT_TRUE(send.wait().ok());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_TRUE(registered[i].wait().ok() && plain[i].wait().ok());
      EXPECT_TRUE(registered[i].holds(static_cast<int>(2 * i))) << sizes[i] << " bytes";
      EXPECT_TRUE(plain[i].holds(static_cast<int>(2 * i + 1))) << sizes[i] << " bytes";
    }
    const ChannelCounters counters = node.counters();
    EXPECT_GT(counters.bytes_in_place, 300'001u);
    EXPECT_GT(counters.bytes_staged, 0u);
  });
}

// A user message may be shorter than its receive. The receiver then grants only the bytes of the
// message.
TEST_P(ChannelGrants, PartOfARegion) {
  World world(GetParam(), 2, {.limits = tiny});
  std::vector<std::byte> region(50'000, std::byte{7});
  const auto registration = world[1].mesh.add_memory(region).take();
  Send send(5000, user(1), 1);
  Recv recv(20'000, 0, user(1));
  recv.sink.out = region.data() + 10'000;
  world[1].post(recv);
  world[0].post(1, send);
  ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
  EXPECT_EQ(world[1].counters().bytes_in_place, 5000u);
  EXPECT_TRUE(std::equal(send.memory.begin(), send.memory.end(), region.begin() + 10'000));
  const auto untouched = [](std::byte each) { return each == std::byte{7}; };
  EXPECT_TRUE(std::all_of(region.begin(), region.begin() + 10'000, untouched));
  EXPECT_TRUE(std::all_of(region.begin() + 15'000, region.end(), untouched));
}

// Memory that is only partly registered, or no longer registered, is not granted.
TEST_P(ChannelGrants, OnlyRegisteredMemoryIsGranted) {
  World world(GetParam(), 2, {.limits = tiny});
  for (const bool unregistered : {false, true}) {
    Send send(5000, collective(unregistered), 1);
    Recv recv(5000, 0, collective(unregistered));
    auto registration =
        world[1].mesh.add_memory(std::span(recv.memory).first(unregistered ? 5000 : 4999)).take();
    if (unregistered) registration.clear();
    world[1].post(recv);
    world[0].post(1, send);
    ASSERT_TRUE(recv.wait().ok() && send.wait().ok());
    EXPECT_TRUE(recv.holds(1));
  }
  EXPECT_EQ(world[1].counters().bytes_in_place, 0u);
  EXPECT_EQ(world[1].counters().bytes_staged, 10'000u);
}

// There are more messages at the same time than staging chunks, so messages wait for chunks.
TEST_P(ChannelGrants, StagingIsShared) {
  World world(GetParam(), 2, {.small_buffers = true, .limits = tiny});
  constexpr std::size_t count = 100;
  std::deque<Send> sends;
  std::deque<Recv> recvs;
  for (std::uint32_t i = 0; i < count; ++i) {
    world[1].post(recvs.emplace_back(20'000, 0, collective(0, i)));
    world[0].post(1, sends.emplace_back(20'000, collective(0, i), static_cast<int>(i)));
  }
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(recvs[i].wait().ok() && sends[i].wait().ok());
    EXPECT_TRUE(recvs[i].holds(static_cast<int>(i)));
  }
  const ChannelCounters counters = world[1].counters();
  EXPECT_EQ(counters.bytes_staged, count * 20'000);
  EXPECT_EQ(counters.bytes_received, count * 20'000);
}

// Messages of every kind (in place, staged, waiting) are cancelled at one end while their bytes
// move, and a little later at the other end. The memory of an operation that has ended must not
// change, even when later messages use the same id.
TEST_P(ChannelGrants, CancelledTransfersLeaveMemoryAlone) {
  constexpr std::uint64_t rounds = 100;
  constexpr std::uint32_t at_once = 10;
  World world(GetParam(), 2, {.small_buffers = true, .background = false, .limits = tiny});
  std::mt19937 random(11);
  std::uint64_t cancelled = 0;
  const auto progress = [&](unsigned passes) {
    for (unsigned i = 0; i < passes; ++i) world[static_cast<int>(i % 2)].driver.progress();
  };
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::deque<Send> sends;
    std::deque<RegisteredRecv> recvs;
    for (std::uint32_t i = 0; i < at_once; ++i) {
      RegisteredRecv& recv = recvs.emplace_back(world[1], 200'000, 0, collective(round, i));
      if (i % 3 == 0) recv.registration.clear();
      world[1].post(recv);
      world[0].post(1, sends.emplace_back(200'000, collective(round, i), 1));
    }
    progress(random() % 100);
    const int first = static_cast<int>(random() % 2);
    for (const int end : {first, 1 - first}) {
      world[end].drive([&] {
        for (std::size_t i = 0; i < at_once; ++i) {
          if ((end == 0 ? sends[i].over.load() : recvs[i].over.load()) != 0) continue;
          ++cancelled;
          end == 0 ? world[0].mesh.cancel(sends[i], 1, gave_up) : world[1].mesh.cancel(recvs[i], gave_up);
        }
      });
      progress(random() % 4);
    }
    const Deadline limit = patience();
    const auto over = [](const auto& op) { return op.over.load() != 0; };
    while (!limit.expired() && !(std::ranges::all_of(sends, over) && std::ranges::all_of(recvs, over)))
      progress(2);
    std::deque<std::vector<std::byte>> contents;
    std::deque<test::Poisoned> untouchable;
    for (std::size_t i = 0; i < at_once; ++i) {
      ASSERT_EQ(sends[i].completions + recvs[i].completions, 2);
      recvs[i].registration.clear();
      contents.push_back(recvs[i].memory);
      untouchable.emplace_back(sends[i].memory);
      untouchable.emplace_back(recvs[i].memory);
    }
    Send after(50'000, collective(rounds + round), 2);
    RegisteredRecv after_recv(world[1], 50'000, 0, collective(rounds + round));
    world[1].post(after_recv);
    world[0].post(1, after);
    while (!limit.expired() && !(over(after) && over(after_recv))) progress(2);
    ASSERT_TRUE(after_recv.wait().ok() && after.wait().ok());
    EXPECT_TRUE(after_recv.holds(2));
    untouchable.clear();
    for (std::size_t i = 0; i < at_once; ++i) EXPECT_EQ(recvs[i].memory, contents[i]);
  }
  EXPECT_GT(cancelled, rounds * at_once) << "too many messages ended before they could be cancelled";
}

// The sender or the receiver dies, or leaves, while the sender writes into the receiver's memory.
TEST_P(ChannelGrants, PeerEndsInTheMiddle) {
  for (const bool clean : {false, true}) {
    for (const int dying : {0, 1}) {
      World world(GetParam(), 2, {.small_buffers = true, .background = clean, .limits = tiny});
      connect(world);
      std::deque<Send> sends;
      std::deque<RegisteredRecv> recvs;
      for (std::uint32_t i = 0; i < 10; ++i) {
        RegisteredRecv& recv = recvs.emplace_back(world[1], 200'000, 0, collective(0, i));
        if (i % 3 == 0) recv.registration.clear();
        world[1].post(recv);
        world[0].post(1, sends.emplace_back(200'000, collective(0, i), 1));
      }
      for (int i = 0; i < 50; ++i) world[i % 2].driver.progress();
      if (clean) {
        world[dying].shut_down();
      } else {
        world[dying].crash();
      }
      std::deque<test::Poisoned> untouchable;
      for (std::size_t i = 0; i < 10; ++i) {
        const Code code = dying == 0 ? recvs[i].wait().code() : sends[i].wait().code();
        EXPECT_TRUE(code == (clean ? Code::aborted : Code::peer_lost) || code == Code::ok) << to_string(code);
        sends[i].wait();
        recvs[i].wait();
        EXPECT_EQ(sends[i].completions + recvs[i].completions, 2);
        untouchable.emplace_back(sends[i].memory);
        untouchable.emplace_back(recvs[i].memory);
      }
      world.each([](Node& node) { node.shut_down(); });
    }
  }
}

}  // namespace
}  // namespace tutti::conformance
